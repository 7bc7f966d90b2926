// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>

#include "reference/formats/io/sha256.h"
#include "suites/base/run_error.h"
#include "suites/history/history_rows.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/timing/change_points.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int64_t kApplicationId = 0x71637473;  // "qcts"

// case_name: a case's full id, kept as three words that many cases share: "kind.op/scheme/", the input, and
// "/provider_variant". case_state: one row where a case is not as it was in the previous run; status NULL:
// the run does not have it.
constexpr const char* kTables = R"(
CREATE TABLE series (id INTEGER PRIMARY KEY, machine_class TEXT NOT NULL, plan TEXT NOT NULL, selection TEXT NOT NULL,
                     threads INTEGER NOT NULL, UNIQUE (machine_class, plan, selection, threads));
CREATE TABLE run (id INTEGER PRIMARY KEY, series INTEGER NOT NULL REFERENCES series, identity TEXT NOT NULL UNIQUE,
                  started TEXT NOT NULL, head TEXT NOT NULL, counts TEXT NOT NULL, changed INTEGER NOT NULL,
                  added INTEGER NOT NULL, gone INTEGER NOT NULL, alarms INTEGER NOT NULL, measured INTEGER NOT NULL);
CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE case_key (id INTEGER PRIMARY KEY, cell INTEGER NOT NULL, input INTEGER NOT NULL, implementation INTEGER NOT NULL);
CREATE VIEW case_name (id, name) AS SELECT case_key.id, a.text || b.text || c.text FROM case_key
  JOIN word a ON a.id = cell JOIN word b ON b.id = input JOIN word c ON c.id = implementation;
CREATE TABLE case_state (series INTEGER NOT NULL, case_id INTEGER NOT NULL, run INTEGER NOT NULL, status TEXT,
                         reason INTEGER, bytes INTEGER, PRIMARY KEY (series, case_id, run)) WITHOUT ROWID;
CREATE TABLE pace (run INTEGER NOT NULL, case_id INTEGER NOT NULL, us REAL, us_low REAL, us_high REAL, roof REAL,
                   roof_low REAL, roof_high REAL, rounds INTEGER NOT NULL,
                   trusted INTEGER NOT NULL, PRIMARY KEY (run, case_id)) WITHOUT ROWID;
)";

void check_schema(Database& database) {
  if (database.number("SELECT count(*) FROM sqlite_master") == 0) return;  // new
  if (database.number("PRAGMA application_id") != kApplicationId)
    throw UsageError(database.file() + " is an SQLite file, but not a qcts history");
  const int64_t schema = database.number("PRAGMA user_version");
  if (schema != kHistorySchema)
    throw UsageError(
        database.file() + " is a history of schema " + std::to_string(schema) +
        ", but this version of qcts reads schema " + std::to_string(kHistorySchema) +
        (schema > kHistorySchema ? " (a newer qcts wrote it)" : "; keep it, and begin a new file"));
}

void make_tables(Database& database) {
  if (database.number("SELECT count(*) FROM sqlite_master") != 0) return;
  database.execute("PRAGMA application_id = " + std::to_string(kApplicationId));
  database.execute("PRAGMA user_version = " + std::to_string(kHistorySchema));
  database.execute(kTables);
}

// Returns the head without what the history never shows: the kernels of each provider.
Json kept_head(const RunHead& head) {
  Json json = to_json(head);
  for (Json& provider : json["providers"]) provider.erase("implementations");
  return json;
}

std::string identity_of(const RunHead& head) {
  const std::string text = kept_head(head).dump(-1, ' ', false, Json::error_handler_t::replace);
  return sha256_hex(std::as_bytes(std::span(text)));
}

void check_can_be_added(Database& database, int64_t series, const RecordedRun& run) {
  if (run.head.shards != 1)
    throw UsageError(run.name + " is shard " + std::to_string(run.head.shard) + " of " +
                     std::to_string(run.head.shards) +
                     ": only whole runs can be added (qcts merge joins the shards)");
  Statement last = database.prepare("SELECT max(started) FROM run WHERE series = ?");
  last.bind(1, series);
  if (last.step() && !last.is_null(0) && run.head.started_utc < last.text(0))
    throw UsageError(run.name + " started " + run.head.started_utc +
                     ", before the last run of its series in " + database.file() + " (" + last.text(0) +
                     "): runs must be added in the order in which they started");
}

void write_paces(Database& database, int64_t run, const RecordedRun& recorded, CaseNames& names) {
  Statement insert = database.prepare("INSERT INTO pace VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const CaseState& state : recorded.cases) {
    if (!state.pace) continue;
    const Pace& pace = *state.pace;
    insert.bind(1, run).bind(2, names.id_of(state.id));
    insert.bind(3, pace.us.value).bind(4, pace.us.low).bind(5, pace.us.high);
    insert.bind(6, pace.of_roof.value).bind(7, pace.of_roof.low).bind(8, pace.of_roof.high);
    insert.bind(9, static_cast<int64_t>(pace.of_roof.samples)).bind(10, int64_t{pace.trusted}).run();
  }
}

Interval interval_at(const Statement& row, int column, size_t rounds) {
  return {row.real(column), row.real(column + 1),
          row.is_null(column + 2) ? std::numeric_limits<double>::infinity() : row.real(column + 2), rounds};
}

// Reads us, us_low, us_high, roof, roof_low, roof_high, rounds and trusted from `column` on.
Pace pace_at(const Statement& row, int column) {
  const auto rounds = static_cast<size_t>(row.integer(column + 6));
  return {interval_at(row, column, rounds), interval_at(row, column + 3, rounds),
          row.integer(column + 7) != 0};
}

}  // namespace

bool HistorySeries::same_as(const HistorySeries& other) const {
  return machine_class == other.machine_class && plan == other.plan && selection == other.selection &&
         threads == other.threads;
}

HistorySeries series_of(const RunHead& head) {
  return {0, machine_class_of(head), head.plan, selection_of(head), head.threads};
}

History::History(const fs::path& file, Database::Mode mode)
    : database_([&] {
        if (mode == Database::Mode::read && !fs::is_regular_file(file))
          throw UsageError(file.string() + ": there is no history");
        return Database(file, mode);
      }()) {
  try {
    if (mode == Database::Mode::write) Transaction can_be_written(database_);
    check_schema(database_);
  } catch (const RunError& error) {
    if (std::string(error.what()).find("not a database") == std::string::npos) throw;
    throw UsageError(file.string() + " is not a qcts history: it is not an SQLite file");
  }
}

std::optional<int64_t> History::find_series(const HistorySeries& wanted) {
  for (const HistorySeries& one : series())
    if (one.same_as(wanted)) return one.id;
  return std::nullopt;
}

Appended History::append(const RecordedRun& run) {
  Transaction transaction(database_);
  make_tables(database_);
  const std::string identity = identity_of(run.head);
  Statement known = database_.prepare("SELECT id FROM run WHERE identity = ?");
  if (known.bind(1, identity).step()) return {.run = known.integer(0), .already_there = true, .counts = {}};

  const HistorySeries wanted = series_of(run.head);
  std::optional<int64_t> series = find_series(wanted);
  if (!series) {
    database_.prepare("INSERT INTO series (machine_class, plan, selection, threads) VALUES (?, ?, ?, ?)")
        .bind(1, wanted.machine_class)
        .bind(2, wanted.plan)
        .bind(3, wanted.selection)
        .bind(4, int64_t{wanted.threads})
        .run();
    series = database_.last_inserted();
  }
  check_can_be_added(database_, *series, run);
  const int64_t id = database_.number("SELECT 1 + coalesce(max(id), 0) FROM run");
  CaseNames names(database_);
  Appended appended{.run = id, .counts = write_states(database_, *series, id, run.cases, names)};
  write_paces(database_, id, run, names);
  const HistoryRun& counts = appended.counts;
  database_.prepare("INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(1, id)
      .bind(2, *series)
      .bind(3, identity)
      .bind(4, run.head.started_utc)
      .bind(5, kept_head(run.head).dump(-1, ' ', false, Json::error_handler_t::replace))
      .bind(6, Json(counts.counts).dump())
      .bind(7, static_cast<int64_t>(counts.changed))
      .bind(8, static_cast<int64_t>(counts.added))
      .bind(9, static_cast<int64_t>(counts.gone))
      .bind(10, static_cast<int64_t>(run.latency_trust.alarms))
      .bind(11, static_cast<int64_t>(run.latency_trust.measured))
      .run();
  Statement count = database_.prepare("SELECT count(*) FROM run WHERE series = ?");
  count.bind(1, *series).step();
  appended.nights = static_cast<uint64_t>(count.integer(0));
  count.reset();
  known.reset();
  transaction.commit();
  return appended;
}

std::vector<HistorySeries> History::series() {
  std::vector<HistorySeries> list;
  if (database_.number("SELECT count(*) FROM sqlite_master") == 0) return list;
  Statement rows =
      database_.prepare("SELECT id, machine_class, plan, selection, threads FROM series ORDER BY id");
  while (rows.step())
    list.push_back(
        {rows.integer(0), rows.text(1), rows.text(2), rows.text(3), static_cast<uint32_t>(rows.integer(4))});
  return list;
}

std::vector<HistoryRun> History::runs(int64_t series) {
  std::vector<HistoryRun> list;
  Statement rows = database_.prepare(
      "SELECT id, started, head, counts, changed, added, gone, alarms, measured FROM run WHERE series = ? "
      "ORDER BY id");
  rows.bind(1, series);
  while (rows.step()) {
    HistoryRun run;
    run.id = rows.integer(0);
    run.started = rows.text(1);
    run.commit = Json::parse(rows.text(2)).value("suite_commit", "");
    const auto counts = Json::parse(rows.text(3)).get<std::vector<uint64_t>>();
    std::copy_n(counts.begin(), std::min(counts.size(), run.counts.size()), run.counts.begin());
    run.changed = static_cast<uint64_t>(rows.integer(4));
    run.added = static_cast<uint64_t>(rows.integer(5));
    run.gone = static_cast<uint64_t>(rows.integer(6));
    run.suspended =
        static_cast<uint64_t>(rows.integer(7)) > allowed_alarms(static_cast<uint64_t>(rows.integer(8)));
    list.push_back(std::move(run));
  }
  return list;
}

std::vector<CaseFlips> History::flips(int64_t series) {
  std::vector<CaseFlips> list;
  Statement rows = database_.prepare(
      "SELECT name, run, status FROM case_state JOIN case_name ON case_name.id = case_id WHERE series = ? "
      "AND case_id IN "
      "(SELECT case_id FROM case_state WHERE series = ? GROUP BY case_id HAVING count(*) > 1) ORDER BY "
      "case_id, run");
  rows.bind(1, series).bind(2, series);
  std::string id;
  std::optional<Status> before;
  while (rows.step()) {
    if (rows.text(0) != id) before.reset();
    id = rows.text(0);
    const std::optional<Status> after = rows.is_null(2) ? std::nullopt : status_from_name(rows.text(2));
    if (before && after && *before != *after) {
      if (list.empty() || list.back().id != id) list.push_back({id, {}});
      list.back().flips.push_back({rows.integer(1), *before, *after});
    }
    before = after;
  }
  std::stable_sort(list.begin(), list.end(),
                   [](const CaseFlips& a, const CaseFlips& b) { return a.flips.size() > b.flips.size(); });
  return list;
}

std::vector<PaceSeries> History::paces(int64_t series) {
  std::map<std::string, PaceSeries> cases;
  Statement rows = database_.prepare(
      "SELECT name, pace.run, us, us_low, us_high, roof, roof_low, roof_high, rounds, trusted FROM pace JOIN "
      "run ON "
      "run.id = "
      "pace.run JOIN case_name ON case_name.id = case_id WHERE series = ? ORDER BY pace.run");
  rows.bind(1, series);
  while (rows.step()) {
    PaceSeries& one = cases[rows.text(0)];
    one.id = rows.text(0);
    one.nights.push_back({rows.integer(1), pace_at(rows, 2)});
  }
  std::map<int64_t, bool> suspended;
  for (const HistoryRun& run : runs(series)) suspended[run.id] = run.suspended;
  std::vector<PaceSeries> list;
  for (auto& [name, one] : cases) {
    for (PaceNight& night : one.nights) night.pace.trusted = night.pace.trusted && !suspended[night.run];
    list.push_back(std::move(one));
  }
  return list;
}

SchemeNights History::scheme_nights(int64_t series, const std::vector<HistoryRun>& runs) {
  return read_scheme_nights(database_, series, runs);
}

int64_t History::id_before(const RecordedRun& run) {
  const std::optional<int64_t> series = find_series(series_of(run.head));
  if (!series) return 0;
  Statement before = database_.prepare(
      "SELECT coalesce(max(id), 0) FROM run WHERE series = ?1 AND started <= ?2 AND identity <> ?3 AND id < "
      "coalesce((SELECT id FROM run WHERE identity = ?3), 9223372036854775807)");
  before.bind(1, *series).bind(2, std::string_view(run.head.started_utc)).bind(3, identity_of(run.head));
  return before.step() ? before.integer(0) : 0;
}

std::optional<RecordedRun> History::last_before(const RecordedRun& run) {
  const int64_t id = id_before(run);
  if (id == 0) return std::nullopt;
  return load(id);
}

RecordedRun History::load(int64_t id) {
  Statement rows = database_.prepare("SELECT series, head, alarms, measured FROM run WHERE id = ?");
  rows.bind(1, id).step();
  RecordedRun run;
  run.head = run_head_from_json(Json::parse(rows.text(1)));
  run.name = database_.file() + ", run " + std::to_string(id);
  run.latency_trust.alarms = static_cast<uint64_t>(rows.integer(2));
  run.latency_trust.measured = static_cast<uint64_t>(rows.integer(3));
  run.latency_trust.allowed = allowed_alarms(run.latency_trust.measured);
  run.latency_trust.suspended = run.latency_trust.alarms > run.latency_trust.allowed;
  run.cases = read_states(database_, rows.integer(0), id);
  Statement paces = database_.prepare(
      "SELECT name, us, us_low, us_high, roof, roof_low, roof_high, rounds, trusted FROM pace JOIN case_name "
      "ON "
      "case_name.id = "
      "case_id WHERE run = ?");
  paces.bind(1, id);
  while (paces.step()) {
    const std::string name = paces.text(0);
    const auto found =
        std::lower_bound(run.cases.begin(), run.cases.end(), name,
                         [](const CaseState& c, const std::string& text) { return c.id < text; });
    if (found != run.cases.end() && found->id == name) found->pace = pace_at(paces, 1);
  }
  return run;
}

PaceLevels trusted_levels(const PaceSeries& series) {
  PaceLevels levels;
  std::vector<double> alone;
  for (size_t i = 0; i < series.nights.size(); ++i) {
    const Pace& pace = series.nights[i].pace;
    if (!pace.trusted) continue;
    levels.over_roof = levels.over_roof && pace.has_roof();
    levels.logs.push_back(pace.has_roof() ? std::log(pace.of_roof.value) : 0);
    alone.push_back(std::log(pace.us.value));
    levels.nights.push_back(i);
  }
  // Differences of neighbours do not see a step of the level.
  const auto restlessness = [](const std::vector<double>& logs) {
    std::vector<double> steps;
    for (size_t i = 1; i < logs.size(); ++i) steps.push_back(std::fabs(logs[i] - logs[i - 1]));
    return median(steps);
  };
  if (!levels.over_roof || restlessness(alone) < restlessness(levels.logs)) {
    levels.over_roof = false;
    levels.logs = std::move(alone);
  }
  return levels;
}

PaceHistory History::pace_history(const RecordedRun& run) {
  PaceHistory history;
  const int64_t last = id_before(run);
  if (last == 0) return history;
  for (PaceSeries& one : paces(*find_series(series_of(run.head)))) {
    std::erase_if(one.nights, [&](const PaceNight& night) { return night.run > last; });
    PaceLevels levels = trusted_levels(one);
    std::vector<double>& logs = levels.logs;
    const std::vector<ChangePoint> changes = change_points(logs, std::log1p(kSlowdownMargin));
    if (!changes.empty())
      logs.erase(logs.begin(), logs.begin() + static_cast<std::ptrdiff_t>(changes.back().at));
    if (!logs.empty()) history[one.id] = {levels.over_roof, std::move(logs)};
  }
  return history;
}

}  // namespace qcts
