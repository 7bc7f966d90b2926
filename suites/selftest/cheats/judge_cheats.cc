// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/cheats/judge_cheats.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <ranges>
#include <stdexcept>

#include "fixtures/golden.h"
#include "reports/waivers.h"
#include "suites/base/memory.h"
#include "suites/base/paths.h"
#include "suites/base/printable.h"
#include "suites/base/run_error.h"
#include "suites/cases/case_key.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/run/workers/supervisor.h"

namespace qcts::cheats {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Enough for an interval; what is timed is wrong or right, not fast or slow.
constexpr double kLatencyBudgetS = 2;

bool is_selected(const std::vector<std::string>& globs, const Cheat& cheat) {
  return globs.empty() ||
         std::ranges::any_of(globs, [&](const std::string& glob) { return glob_match(glob, cheat.id); });
}

// The loader takes two links to a file for one library, so each habit gets a copy with its name.
fs::path library_of(std::string_view habit, const fs::path& folder) {
  const fs::path built = executable_path().parent_path().parent_path() / "lib/selftest/qcts_cheats.so";
  if (!fs::exists(built)) throw std::runtime_error("no cheats in " + built.string());
  const fs::path named = folder / ("qcts_cheat_" + std::string(habit) + ".so");
  fs::copy_file(built, named);
  return named;
}

// During its lifetime, new workers have the fault switched off in their environment.
class SwitchedOff {
 public:
  explicit SwitchedOff(Fault fault) : is_off_(fault == Fault::off) {
    if (is_off_) ::setenv("QCTS_CHEAT_OFF", "1", 1);
  }
  ~SwitchedOff() {
    if (is_off_) ::unsetenv("QCTS_CHEAT_OFF");
  }
  SwitchedOff(const SwitchedOff&) = delete;
  SwitchedOff& operator=(const SwitchedOff&) = delete;

 private:
  bool is_off_;
};

ProviderSlot slot_of(const fs::path& library, const fs::path& scratch) {
  ProviderSlot slot{};
  slot.logs = scratch;
  slot.given = slot.options.provider = library.string();
  slot.options.fixtures = {fixtures_folder()};
  slot.options.fixture_files = Files::known;
  slot.options.settings.scratch = scratch;
  slot.options.settings.targets = targets_folder();
  slot.options.settings.program = program_word();
  slot.options.settings.latency_budget_s = kLatencyBudgetS;
  slot.options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  return slot;
}

std::vector<Task> tasks_of(std::vector<Offer> offered, std::string_view cases) {
  OfferTable offers;
  offers.add(std::move(offered));
  const Plan plan = named_plan(kCompletePlan);
  Selection selection;
  for (const auto word : cases | std::views::split(' '))
    selection.filters.emplace_back(word.begin(), word.end());
  const IdFilter filter(selection, offers.suffixes());
  std::vector<Task> tasks;
  for (const auto& [c, found, undeclared] : expand_paired(plan, {}, offers, {}, filter)) {
    if (std::ranges::find(selection.filters, c.id.text()) == selection.filters.end()) continue;
    for (const Offer* offer : found)
      tasks.push_back({0,
                       {c.id, full_id(c, *offer), offer->variant},
                       case_key(c, offer->variant).dump(),
                       plan.case_timeout_s});
  }
  if (tasks.empty()) throw RunError(Outcome::infrastructure, "no case has the id " + std::string(cases));
  return tasks;
}

std::string logs_in(const fs::path& folder) {
  std::string all;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".log") {
      std::ifstream file(entry.path(), std::ios::binary);
      all.append(std::istreambuf_iterator<char>(file), {});
    }
  return all;
}

}  // namespace

Judged judged(std::string_view habit, std::string_view cases, Fault fault) {
  const ScratchFolder scratch, libraries;
  const SwitchedOff switched(fault);
  std::vector<ProviderSlot> slots;
  slots.push_back(slot_of(library_of(habit, libraries.path()), scratch.path()));
  start_workers(slots, 120);
  Judged judged;
  judged.problem = slots[0].ready.error;
  if (!judged.problem.empty()) return judged;
  judged.isolation = slots[0].ready.info.value("isolation", "");
  judge_tasks(
      slots, tasks_of(slots[0].ready.offers, cases), 1,
      [&](Verdict verdict) {
        judged.verdicts.push_back(std::move(verdict));
        return true;
      },
      [](const std::vector<std::string>&) { return true; });
  slots.clear();  // ends the workers, so that their logs are whole
  judged.attempts = attempts_in(logs_in(scratch.path()));
  if (!judged.isolation.starts_with("isolated")) judged.problem = "it was not isolated: " + judged.isolation;
  return judged;
}

bool CheatRow::twin_passed() const {
  return of_twin.problem.empty() && !of_twin.verdicts.empty() &&
         std::ranges::all_of(of_twin.verdicts,
                             [](const Verdict& verdict) { return verdict.status == Status::pass; });
}

bool selects_any(const std::vector<std::string>& globs) {
  return std::ranges::any_of(catalogue(), [&](const Cheat& cheat) { return is_selected(globs, cheat); });
}

std::vector<CheatRow> judge_cheats(const std::vector<std::string>& globs,
                                   const std::function<void(const CheatRow&)>& on_row) {
  std::vector<CheatRow> rows;
  std::map<std::pair<std::string_view, std::string_view>, Judged> twins;
  for (const Cheat& cheat : catalogue()) {
    if (!is_selected(globs, cheat)) continue;
    CheatRow& row = rows.emplace_back();
    row.cheat = &cheat;
    row.of_cheat = judged(cheat.id, cheat.cases);
    row.found = finding_of(row.of_cheat.verdicts, row.of_cheat.attempts, cheat.least_us);
    const auto [twin, is_new] = twins.try_emplace({cheat.twin, cheat.cases});
    if (is_new) twin->second = judged(cheat.twin, cheat.cases);
    row.of_twin = twin->second;
    on_row(row);
  }
  return rows;
}

namespace {

std::string told(const Judged& judged) {
  std::string text;
  if (!judged.problem.empty()) text += "      " + printable(judged.problem) + "\n";
  for (const Verdict& verdict : judged.verdicts)
    text += "      " + std::string(status_name(verdict.status)) + " " + verdict.full_id() +
            (verdict.reason.empty() ? "" : ": " + printable(verdict.reason)) + "\n";
  for (const Attempt& attempt : judged.attempts)
    text += "      " + printable(attempt.what) + ": " + printable(attempt.how) + "\n";
  return text;
}

Json verdicts_json(const Judged& judged) {
  Json list = Json::array();
  for (const Verdict& verdict : judged.verdicts)
    list.push_back(
        {{"case", verdict.full_id()}, {"status", status_name(verdict.status)}, {"reason", verdict.reason}});
  return list;
}

Json attempts_json(const Judged& judged) {
  Json list = Json::array();
  for (const Attempt& attempt : judged.attempts)
    list.push_back({{"what", attempt.what}, {"done", attempt.was_done}, {"how", attempt.how}});
  return list;
}

}  // namespace

std::string text_of(const CheatRow& row) {
  char line[600];
  const std::string found =
      row.of_cheat.problem.empty() ? std::string(finding_name(row.found)) : "not judged";
  std::snprintf(line, sizeof line, "  %-27s %-5s want %-21s got %-21s twin %s  [%s]\n",
                std::string(row.cheat->id).c_str(), row.is_named() ? "named" : "HOLE",
                std::string(finding_name(row.cheat->finding)).c_str(), found.c_str(),
                row.twin_passed() ? "passed" : "FAILED", std::string(row.cheat->pattern).c_str());
  std::string text = line;
  if (!row.is_named()) text += told(row.of_cheat);
  if (!row.twin_passed()) text += "    twin " + std::string(row.cheat->twin) + ":\n" + told(row.of_twin);
  return text;
}

std::string score_text(const std::vector<CheatRow>& rows) {
  const auto total = std::to_string(rows.size());
  return std::to_string(std::ranges::count_if(rows, &CheatRow::is_named)) + " of " + total + " named, " +
         std::to_string(std::ranges::count_if(rows, &CheatRow::twin_passed)) + " of " + total +
         " honest twins passed";
}

bool all_hold(const std::vector<CheatRow>& rows) {
  return std::ranges::all_of(rows, [](const CheatRow& row) { return row.is_named() && row.twin_passed(); });
}

Json to_json(const std::vector<CheatRow>& rows) {
  Json list = Json::array();
  for (const CheatRow& row : rows)
    list.push_back({{"cheat", row.cheat->id},
                    {"what", row.cheat->what},
                    {"pattern", row.cheat->pattern},
                    {"timed", row.cheat->is_timed()},
                    {"expected", finding_name(row.cheat->finding)},
                    {"found", finding_name(row.found)},
                    {"named", row.is_named()},
                    {"twin", row.cheat->twin},
                    {"twin_passed", row.twin_passed()},
                    {"isolation", row.of_cheat.isolation},
                    {"problem", row.of_cheat.problem},
                    {"attempts", attempts_json(row.of_cheat)},
                    {"verdicts", verdicts_json(row.of_cheat)},
                    {"verdicts_of_twin", verdicts_json(row.of_twin)}});
  return {{"cheats", rows.size()},
          {"named", std::ranges::count_if(rows, &CheatRow::is_named)},
          {"twins_passed", std::ranges::count_if(rows, &CheatRow::twin_passed)},
          {"rows", std::move(list)}};
}

}  // namespace qcts::cheats
