// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/kill.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>

#include "fixtures/golden.h"
#include "reports/waivers.h"
#include "suites/base/paths.h"
#include "suites/cases/case.h"
#include "suites/cases/case_key.h"
#include "suites/cases/expand.h"
#include "suites/run/supervisor.h"
#include "suites/selftest/exam.h"

namespace qcts::selftest {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

bool matches(const std::vector<std::string>& globs, std::string_view text) {
  return globs.empty() ||
         std::ranges::any_of(globs, [&](const std::string& glob) { return glob_match(glob, text); });
}

bool is_selected(const KillRequest& request, const std::vector<MutantKind>& kinds, const MutantInfo& mutant) {
  if (request.set != "all" && (request.set == "held") != mutant.held) return false;
  if (!kinds.empty() && std::ranges::find(kinds, mutant.kind) == kinds.end()) return false;
  return matches(request.mutants, mutant.id);
}

// Is it a wrong answer or none, which a vendor would be told is broken?
bool is_kill(Status status) {
  return status == Status::fail || status == Status::crash || status == Status::timeout ||
         status == Status::resource;
}

// During its lifetime, new workers have the mutant in their environment.
class Planted {
 public:
  explicit Planted(std::string_view id) { ::setenv("QCTS_MUTANT", std::string(id).c_str(), 1); }
  ~Planted() { ::unsetenv("QCTS_MUTANT"); }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

class ProviderKill {
 public:
  explicit ProviderKill(const KillRequest& request) : request_(request), plan_(named_plan(request.plan)) {
    const fs::path library =
        executable_path().parent_path().parent_path() / "lib" / "selftest" / "qcts_mutants.so";
    if (!fs::exists(library)) throw std::runtime_error("no mutants in " + library.string());
    source_.given = library.string();
    source_.logs = scratch_.path();
    source_.options.provider = library.string();
    source_.options.fixtures = {fixtures_folder()};
    fixtures_ = load_fixtures(source_.options.fixtures);
    source_.options.fixture_files = Files::known;
    source_.options.context.scratch = scratch_.path();
    source_.options.context.targets = targets_folder();
    source_.options.context.program = program_word();
    source_.options.context.seed = request.seed;
  }

  // Cases without goldens first: they kill most mutants, and reading goldens is most of a worker's start-up
  // time.
  KillRow row(const MutantInfo& mutant, std::string_view faults) {
    if (mutant.kind != MutantKind::kernel || request_.every_case) return judged(mutant, faults, true);
    KillRow without = judged(mutant, faults, false);
    if (without.killed()) return without;
    KillRow row = judged(mutant, faults, true);
    if (row.killed()) row.to_kill_s += without.wall_s;
    row.wall_s += without.wall_s;
    return row;
  }

 private:
  KillRow judged(const MutantInfo& mutant, std::string_view faults, bool with_goldens) {
    KillRow row;
    row.mutant = &mutant;
    const Planted planted(faults);
    const Clock::time_point began = Clock::now();
    std::vector<Source> sources;
    sources.push_back(Source{source_.options, source_.given, source_.logs, {}, nullptr});
    Supervisor supervisor(sources);
    supervisor.greet(120);
    row.problem = sources[0].hello.error;
    if (!row.problem.empty()) return row;
    const std::vector<Task> asked = tasks(mutant, sources[0].hello.offers, with_goldens);
    if (asked.empty()) row.problem = "no case of this plan tests it";
    supervisor.run(
        asked, request_.every_case ? request_.jobs : 1,
        [&](const Verdict& verdict) {
          row.judged += verdict.status != Status::not_supported;
          if (!is_kill(verdict.status)) return true;
          if (row.killers.empty()) row.to_kill_s = seconds_since(began);
          row.killers.push_back(
              {verdict.case_id.text(), std::string(status_name(verdict.status)), verdict.reason});
          return request_.every_case;
        },
        [](const std::vector<std::string>&) { return true; });
    row.wall_s = seconds_since(began);
    return row;
  }

  // Determinism last, because it is the slowest. Latency proves nothing here.
  std::vector<Task> tasks(const MutantInfo& mutant, std::vector<Offer> offered, bool with_goldens) {
    OfferTable offers;
    offers.add(std::move(offered));
    std::vector<Task> front, back;
    const ExpandInputs inputs =
        with_goldens ? ExpandInputs{fixtures_.goldens, fixtures_.malformed} : ExpandInputs{};
    Selection selection;
    selection.filters = request_.cases;
    for (const Case& c : expand(plan_, inputs, offers, IdFilter(selection, offers.suffixes()))) {
      const bool file = c.id.op == Op::file;
      if (c.id.kind == Kind::latency || file != (mutant.kind == MutantKind::format)) continue;
      if (!matches(request_.cases, c.id.text())) continue;
      for (const Offer* offer : offers_for(c, plan_, offers))
        (c.id.kind == Kind::determinism ? back : front)
            .push_back({0,
                        {c.id, full_id(c, *offer), offer->variant},
                        case_key(c, offer->variant).dump(),
                        plan_.case_timeout_s});
    }
    front.insert(front.end(), back.begin(), back.end());
    return front;
  }

  const KillRequest& request_;
  const Plan plan_;
  Fixtures fixtures_;
  ScratchFolder scratch_;
  Source source_;
};

KillRow examined(const MutantInfo& mutant) {
  const Clock::time_point began = Clock::now();
  KillRow row;
  row.mutant = &mutant;
  const std::vector<ExamResult> results = examine(mutant.kind, mutant.id);
  if (results.empty()) row.problem = "no question tests this part of the judge";
  row.judged = results.size();
  for (const ExamResult& result : results)
    if (!result.held) row.killers.push_back({result.question, "fail", result.what});
  row.wall_s = row.to_kill_s = seconds_since(began);
  return row;
}

}  // namespace

std::vector<MutantKind> mutant_kinds(const KillRequest& request) {
  if (!request.kinds.empty()) return request.kinds;
  std::vector<MutantKind> kinds;
  for (const std::string& name : named_plan(request.plan).kills) {
    const std::optional<MutantKind> kind = find_mutant_kind(name);
    if (!kind)
      throw RunError(Outcome::usage, request.plan + ": kills: unknown kind of mutant '" + name + "'");
    kinds.push_back(*kind);
  }
  return kinds;
}

bool selects_any(const KillRequest& request) {
  const std::vector<MutantKind> kinds = mutant_kinds(request);
  return std::ranges::any_of(mutant_list(),
                             [&](const MutantInfo& mutant) { return is_selected(request, kinds, mutant); });
}

std::vector<KillRow> kill(const KillRequest& request, const std::function<void(const KillRow&)>& on_row) {
  std::vector<KillRow> rows;
  ProviderKill providers(request);
  const std::vector<MutantKind> kinds = mutant_kinds(request);
  for (const MutantInfo& mutant : mutant_list()) {
    if (!is_selected(request, kinds, mutant)) continue;
    const bool provider = mutant.kind == MutantKind::kernel || mutant.kind == MutantKind::format;
    rows.push_back(provider ? providers.row(mutant, mutant.id) : examined(mutant));
    on_row(rows.back());
  }
  return rows;
}

KillRow kill_together(const KillRequest& request, const std::string& faults, MutantKind kind) {
  static constexpr MutantInfo kNone{"none", MutantKind::kernel, false, "no fault", ""},
      kNoneOfFiles{"none", MutantKind::format, false, "no fault", ""};
  const MutantInfo* none = kind == MutantKind::format ? &kNoneOfFiles : &kNone;
  const MutantInfo* first = faults.empty() ? none : find_mutant(faults.substr(0, faults.find('+')));
  if (first == nullptr) throw std::invalid_argument("no mutant '" + faults + "'");
  return ProviderKill(request).row(*first, faults);
}

std::vector<const KillRow*> survivors(const std::vector<KillRow>& rows) {
  std::vector<const KillRow*> alive;
  for (const KillRow& row : rows)
    if (!row.killed() && row.mutant->proof.empty()) alive.push_back(&row);
  return alive;
}

std::vector<std::string> greedy_cover(const std::vector<KillRow>& rows) {
  std::map<std::string, std::set<std::string_view>> kills;
  std::set<std::string_view> left;
  for (const KillRow& row : rows) {
    if (row.mutant->kind != MutantKind::kernel && row.mutant->kind != MutantKind::format) continue;
    for (const Killer& killer : row.killers) kills[killer.case_id].insert(row.mutant->id);
    if (row.killed()) left.insert(row.mutant->id);
  }
  std::vector<std::string> chosen;
  while (!left.empty()) {
    const auto gain = [&](const auto& entry) {
      return std::ranges::count_if(entry.second, [&](std::string_view id) { return left.contains(id); });
    };
    const auto best = std::ranges::max_element(kills, {}, gain);
    for (const std::string_view id : best->second) left.erase(id);
    chosen.push_back(best->first);
  }
  std::ranges::sort(chosen);
  return chosen;
}

Json to_json(const KillRequest& request, const std::vector<KillRow>& rows) {
  Json list = Json::array();
  size_t killed = 0, equivalent = 0;
  for (const KillRow& row : rows) {
    const MutantInfo& mutant = *row.mutant;
    Json killers = Json::array();
    for (const Killer& killer : row.killers)
      killers.push_back({{"case", killer.case_id}, {"status", killer.status}, {"reason", killer.reason}});
    list.push_back({{"mutant", mutant.id},
                    {"kind", mutant_kind_name(mutant.kind)},
                    {"held_back", mutant.held},
                    {"found", mutant.found},
                    {"what", mutant.what},
                    {"public_case", mutant.public_case},
                    {"equivalent", mutant.proof},
                    {"killed", row.killed()},
                    {"first_killer", row.killed() ? row.killers[0].case_id : ""},
                    {"to_kill_s", row.to_kill_s},
                    {"wall_s", row.wall_s},
                    {"judged", row.judged},
                    {"problem", row.problem},
                    {"killers", std::move(killers)}});
    killed += row.killed() && mutant.proof.empty();
    equivalent += !mutant.proof.empty();
  }
  return {{"schema", 1},
          {"plan", request.plan},
          {"every_case", request.every_case},
          {"mutants", rows.size()},
          {"equivalent", equivalent},
          {"killed", killed},
          {"rows", std::move(list)}};
}

namespace {

// Returns a row's kills by kind of case: "numerics 12, determinism 3".
std::string kills_by_kind(const KillRow& row) {
  std::map<std::string, size_t> kinds;
  for (const Killer& killer : row.killers) ++kinds[killer.case_id.substr(0, killer.case_id.find('.'))];
  std::string text;
  for (const auto& [kind, count] : kinds)
    text += (text.empty() ? "" : ", ") + kind + " " + std::to_string(count);
  return text;
}

}  // namespace

std::string matrix_text(const std::vector<KillRow>& rows) {
  std::string text;
  char line[400];
  for (const KillRow& row : rows) {
    const char* state = row.killed() ? "killed" : !row.mutant->proof.empty() ? "equivalent" : "LIVES";
    std::snprintf(line, sizeof line, "  %-10s %-28s %-10s %6.2f s  %s%s\n",
                  std::string(mutant_kind_name(row.mutant->kind)).c_str(),
                  std::string(row.mutant->id).c_str(), state, row.killed() ? row.to_kill_s : row.wall_s,
                  row.killed() ? row.killers[0].case_id.c_str() : row.problem.c_str(),
                  row.killers.size() > 1 ? ("  (" + kills_by_kind(row) + ")").c_str() : "");
    text += line;
  }
  return text;
}

}  // namespace qcts::selftest
