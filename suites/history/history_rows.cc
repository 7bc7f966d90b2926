// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/history_rows.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>

#include "suites/base/run_error.h"

namespace qcts {
namespace {

// One row of case_state. status "": the run does not have the case.
struct StateRow {
  std::string status;
  int64_t reason = 0, bytes = 0;
  bool operator==(const StateRow&) const = default;
};

// A case's last row up to a run. (SQLite takes the other columns from the row with the maximum.)
constexpr const char* kLastRows =
    "SELECT case_id, status, reason, bytes, max(run) FROM case_state WHERE series = ? AND run <= ? GROUP BY "
    "case_id";

StateRow row_at(const Statement& rows) { return {rows.text(1), rows.integer(2), rows.integer(3)}; }

// {"payload_bytes": 5, "file_bytes": 7} as "file_bytes 5 payload_bytes 7".
std::string bytes_text(const std::map<std::string, uint64_t>& bytes) {
  std::string text;
  for (const auto& [name, count] : bytes)
    text += (text.empty() ? "" : " ") + name + " " + std::to_string(count);
  return text;
}

std::map<std::string, uint64_t> bytes_from(const std::string& text) {
  std::map<std::string, uint64_t> bytes;
  std::istringstream words(text);
  std::string name;
  for (uint64_t count = 0; words >> name >> count;) bytes[name] = count;
  return bytes;
}

// "numerics.linear/int8_row/" -> "int8_row"; "" for a latency case.
std::string scheme_of_cell(const std::string& cell) {
  const size_t slash = cell.find('/');
  if (slash == cell.npos || cell.starts_with(kind_name(Kind::latency))) return "";
  return cell.substr(slash + 1, cell.find('/', slash + 1) - slash - 1);
}

uint64_t& count_of(NightCounts& counts, Status status) {
  if (status == Status::pass) return counts.pass;
  if (status == Status::not_supported) return counts.declined;
  return is_bad(status) ? counts.bad : counts.undecided;
}

}  // namespace

Words::Words(Database& database)
    : database_(database), insert_(database.prepare("INSERT INTO word (text) VALUES (?)")) {
  Statement rows = database.prepare("SELECT id, text FROM word");
  while (rows.step()) ids_.emplace(rows.text(1), rows.integer(0));
}

int64_t Words::id_of(const std::string& text) {
  const auto [place, fresh] = ids_.emplace(text, 0);
  if (fresh) {
    insert_.bind(1, std::string_view(text)).run();
    place->second = database_.last_inserted();
  }
  return place->second;
}

CaseNames::CaseNames(Database& database)
    : database_(database),
      words_(database),
      insert_(database.prepare("INSERT INTO case_key (cell, input, implementation) VALUES (?, ?, ?)")) {
  Statement rows = database.prepare("SELECT id, name FROM case_name");
  while (rows.step()) ids_.emplace(rows.text(1), rows.integer(0));
}

int64_t CaseNames::id_of(const std::string& name) {
  const auto [place, fresh] = ids_.emplace(name, 0);
  if (fresh) {
    const size_t second = name.find('/', std::min(name.find('/'), name.size() - 1) + 1);
    const size_t input = second == name.npos ? name.size() : second + 1;
    const size_t end = std::min(name.find('/', input), name.size());
    insert_.bind(1, words_.id_of(name.substr(0, input)))
        .bind(2, words_.id_of(name.substr(input, end - input)))
        .bind(3, words_.id_of(name.substr(end)))
        .run();
    place->second = database_.last_inserted();
  }
  return place->second;
}

HistoryRun write_states(Database& database, int64_t series, int64_t run, const std::vector<CaseState>& cases,
                        CaseNames& names) {
  Words& words = names.words();
  std::unordered_map<int64_t, StateRow> before;
  Statement rows = database.prepare(kLastRows);
  rows.bind(1, series).bind(2, run);
  while (rows.step())
    if (const StateRow row = row_at(rows); !row.status.empty()) before.emplace(rows.integer(0), row);
  const bool is_first = before.empty();

  Statement insert = database.prepare("INSERT INTO case_state VALUES (?, ?, ?, ?, ?, ?)");
  insert.bind(1, series).bind(3, run);
  HistoryRun counts;
  for (const CaseState& state : cases) {
    ++counts.counts[static_cast<size_t>(state.status)];
    const int64_t id = names.id_of(state.id);
    const StateRow now{std::string(status_name(state.status)), words.id_of(state.reason),
                       words.id_of(bytes_text(state.bytes))};
    const auto old = before.find(id);
    const bool is_new = old == before.end();
    counts.added += is_new && !is_first;
    counts.changed += !is_new && old->second.status != now.status;
    const bool same = !is_new && old->second == now;
    if (!is_new) before.erase(old);
    if (same) continue;
    insert.bind(2, id).bind(4, std::string_view(now.status)).bind(5, now.reason).bind(6, now.bytes).run();
  }
  counts.gone = before.size();
  for (const auto& [id, row] : before) insert.bind(2, id).bind_null(4).bind_null(5).bind_null(6).run();
  return counts;
}

std::vector<CaseState> read_states(Database& database, int64_t series, int64_t run) {
  std::unordered_map<int64_t, std::string> words;
  Statement texts = database.prepare("SELECT id, text FROM word");
  while (texts.step()) words.emplace(texts.integer(0), texts.text(1));
  Statement rows = database.prepare("SELECT name, status, reason, bytes FROM (" + std::string(kLastRows) +
                                    ") JOIN case_name ON case_name.id = case_id WHERE status IS NOT NULL");
  rows.bind(1, series).bind(2, run);
  std::vector<CaseState> cases;
  while (rows.step()) {
    const StateRow row = row_at(rows);
    const std::optional<Status> status = status_from_name(row.status);
    if (!status)
      throw UsageError(database.file() + " has the unknown status '" + row.status +
                       "': a newer qcts wrote it");
    cases.push_back({rows.text(0), *status, words[row.reason], bytes_from(words[row.bytes]), {}});
  }
  std::sort(cases.begin(), cases.end(), [](const CaseState& a, const CaseState& b) { return a.id < b.id; });
  return cases;
}

SchemeNights read_scheme_nights(Database& database, int64_t series, const std::vector<HistoryRun>& runs) {
  SchemeNights schemes;
  Statement rows = database.prepare(
      "SELECT case_id, text, run, status FROM case_state JOIN case_key ON case_key.id = case_id JOIN word ON "
      "word.id = cell WHERE series = ? ORDER BY case_id, run");
  rows.bind(1, series);
  int64_t case_id = 0, since = 0;
  std::string scheme;
  std::optional<Status> status;
  // Counts the case on the nights from `since` until before run `end`.
  const auto add_until = [&](int64_t end) {
    if (scheme.empty() || !status) return;
    std::vector<NightCounts>& nights = schemes.try_emplace(scheme, runs.size()).first->second;
    const auto night_of = [&](int64_t run) {
      return std::ranges::lower_bound(runs, run, {}, &HistoryRun::id) - runs.begin();
    };
    for (auto night = night_of(since), last = night_of(end); night < last; ++night)
      ++count_of(nights[static_cast<size_t>(night)], *status);
  };
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  while (rows.step()) {
    const bool same_case = rows.integer(0) == case_id;
    add_until(same_case ? rows.integer(2) : kNever);
    case_id = rows.integer(0);
    since = rows.integer(2);
    if (!same_case) scheme = scheme_of_cell(rows.text(1));
    status = rows.is_null(3) ? std::nullopt : status_from_name(rows.text(3));
  }
  add_until(kNever);
  return schemes;
}

}  // namespace qcts
