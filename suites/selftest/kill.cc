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
#include "suites/base/memory.h"
#include "suites/base/paths.h"
#include "suites/cases/case.h"
#include "suites/cases/case_key.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/run/workers/supervisor.h"
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

// Is the answer wrong or missing, so that a vendor's kernel would count as broken?
bool is_kill(Status status) {
  return status == Status::fail || status == Status::crash || status == Status::timeout ||
         status == Status::resource;
}

enum class Claims : uint8_t { own, none };

// During its lifetime, new workers have the mutant in their environment.
class Planted {
 public:
  Planted(std::string_view id, Claims claims) {
    ::setenv("QCTS_MUTANT", std::string(id).c_str(), 1);
    if (claims == Claims::none) ::setenv("QCTS_MUTANT_CLAIMS", "none", 1);
  }
  ~Planted() {
    ::unsetenv("QCTS_MUTANT");
    ::unsetenv("QCTS_MUTANT_CLAIMS");
  }
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

// The library with the mutants of a kind.
fs::path library_of(MutantKind kind) {
  const fs::path library = executable_path().parent_path().parent_path() / "lib" / "selftest" /
                           (kind == MutantKind::cuda ? "qcts_cudamutants.so" : "qcts_mutants.so");
  if (!fs::exists(library)) throw std::runtime_error("no mutants in " + library.string());
  return library;
}

class ProviderKill {
 public:
  explicit ProviderKill(const KillRequest& request) : request_(request), plan_(named_plan(request.plan)) {
    slot_.logs = scratch_.path();
    slot_.options.fixtures = {fixtures_folder()};
    fixtures_ = load_fixtures(slot_.options.fixtures);
    slot_.options.fixture_files = Files::known;
    slot_.options.settings.scratch = scratch_.path();
    slot_.options.settings.targets = targets_folder();
    slot_.options.settings.program = program_word();
    slot_.options.settings.seed = request.seed;
    slot_.options.settings.diagnose = !request.every_case;
    slot_.options.memory_limit_bytes = kDefaultMemoryLimitBytes;
  }

  // Cases without goldens first: they kill most mutants, and reading goldens is most of a worker's start-up
  // time.
  KillRow row(const MutantInfo& mutant, std::string_view faults) {
    slot_.given = slot_.options.provider = library_of(mutant.kind).string();
    if (mutant.kind == MutantKind::format) return both_claims(mutant, faults);
    if (mutant.kind == MutantKind::cuda) return proved(mutant, faults);
    return of_kernel(mutant, faults);
  }

 private:
  KillRow of_kernel(const MutantInfo& mutant, std::string_view faults) {
    if (request_.every_case) return judged(mutant, faults, true);
    KillRow without = judged(mutant, faults, false);
    if (without.killed()) return without;
    KillRow row = judged(mutant, faults, true);
    if (row.killed()) row.to_kill_s += without.wall_s;
    row.wall_s += without.wall_s;
    return row;
  }

  // The device kernels take too long to be judged on every case without a fault, as the others are. The cases
  // that kill must pass without it.
  KillRow proved(const MutantInfo& mutant, std::string_view faults) {
    KillRow row = of_kernel(mutant, faults);
    if (faults.empty() || !row.killed()) return row;
    for (const Killer& killer : row.killers) only_cases_.insert(killer.case_id);
    const KillRow without = judged(mutant, "", true);
    only_cases_.clear();
    row.wall_s += without.wall_s;
    for (const Killer& killer : without.killers) passed_.erase(killer.case_id);
    std::erase_if(row.killers, [&](const Killer& killer) {
      if (passed_.contains(killer.case_id)) return false;
      row.problem = killer.case_id + " does not pass without the fault";
      return true;
    });
    return row;
  }

  KillRow both_claims(const MutantInfo& mutant, std::string_view faults) {
    KillRow row = judged(mutant, faults, true);
    KillRow without = judged(mutant, faults, true, Claims::none);
    if (row.problem.empty()) row.problem = without.problem;
    row.judged += without.judged;
    row.wall_s += without.wall_s;
    row.without_claim = std::move(without.killers);
    if (!faults.empty()) return row;
    row.killers.insert(row.killers.end(), row.without_claim.begin(), row.without_claim.end());
    row.without_claim = row.killers;
    return row;
  }

  KillRow judged(const MutantInfo& mutant, std::string_view faults, bool with_goldens,
                 Claims claims = Claims::own) {
    KillRow row;
    row.mutant = &mutant;
    passed_.clear();
    const Planted planted(faults, claims);
    const Clock::time_point began = Clock::now();
    std::vector<ProviderSlot> slots;
    slots.push_back(ProviderSlot{slot_.options, slot_.given, slot_.logs, {}, nullptr});
    start_workers(slots, 120);
    row.problem = slots[0].ready.error;
    if (!row.problem.empty()) return row;
    const std::vector<Task> asked = tasks(mutant, slots[0].ready.offers, with_goldens);
    if (asked.empty()) row.problem = "no case of this plan tests it";
    judge_tasks(
        slots, asked, request_.every_case ? request_.jobs : 1,
        [&](const Verdict& verdict) {
          row.judged += verdict.status != Status::not_supported;
          if (verdict.status == Status::pass) passed_.insert(verdict.case_id.text());
          if (!is_kill(verdict.status)) return true;
          if (row.killers.empty()) row.to_kill_s = seconds_since(began);
          row.killers.push_back({verdict.case_id.text(), std::string(status_name(verdict.status)),
                                 verdict.reason, verdict.mismatch ? verdict.mismatch->where : ""});
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
    const IdFilter filter(selection, offers.suffixes());
    for (const auto& [c, found, undeclared] : expand_paired(plan_, inputs, offers, {}, filter)) {
      const bool file = c.id.op == Op::file;
      if (c.id.kind == Kind::latency || file != (mutant.kind == MutantKind::format)) continue;
      if (!matches(request_.cases, c.id.text())) continue;
      if (!only_cases_.empty() && !only_cases_.contains(c.id.text())) continue;
      for (const Offer* offer : found)
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
  ProviderSlot slot_;
  std::set<std::string> only_cases_;  // empty: all
  std::set<std::string> passed_;      // the cases that passed in the last judged()
};

KillRow examined(const MutantInfo& mutant) {
  const Clock::time_point began = Clock::now();
  KillRow row;
  row.mutant = &mutant;
  const std::vector<ExamResult> results = examine(mutant.kind, mutant.id);
  if (results.empty()) row.problem = "no question tests this part of the judge";
  row.judged = results.size();
  for (const ExamResult& result : results)
    if (!result.held) row.killers.push_back({result.question, "fail", result.what, ""});
  row.wall_s = row.to_kill_s = seconds_since(began);
  return row;
}

}  // namespace

std::vector<MutantKind> mutant_kinds(const KillRequest& request) {
  return request.kinds.empty() ? named_plan(request.plan).kills : request.kinds;
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
    const bool provider = std::ranges::find(kExaminedKinds, mutant.kind) == std::end(kExaminedKinds);
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
  std::map<std::string, std::set<std::string>> kills;
  std::set<std::string> left;
  const auto add = [&](const std::string& target, const std::vector<Killer>& killers) {
    for (const Killer& killer : killers) kills[killer.case_id].insert(target);
    if (!killers.empty()) left.insert(target);
  };
  for (const KillRow& row : rows) {
    if (std::ranges::find(kExaminedKinds, row.mutant->kind) != std::end(kExaminedKinds)) continue;
    add(std::string(row.mutant->id), row.killers);
    add(std::string(row.mutant->id) + " without the claim", row.without_claim);
  }
  std::vector<std::string> chosen;
  while (!left.empty()) {
    const auto gain = [&](const auto& entry) {
      return std::ranges::count_if(entry.second, [&](const std::string& id) { return left.contains(id); });
    };
    const auto best = std::ranges::max_element(kills, {}, gain);
    for (const std::string& id : best->second) left.erase(id);
    chosen.push_back(best->first);
  }
  std::ranges::sort(chosen);
  return chosen;
}

namespace {

Json killers_json(const std::vector<Killer>& killers) {
  Json list = Json::array();
  for (const Killer& killer : killers)
    list.push_back({{"case", killer.case_id},
                    {"status", killer.status},
                    {"reason", killer.reason},
                    {"where", killer.where}});
  return list;
}

}  // namespace

Json to_json(const KillRequest& request, const std::vector<KillRow>& rows) {
  Json list = Json::array();
  size_t killed = 0, equivalent = 0;
  for (const KillRow& row : rows) {
    const MutantInfo& mutant = *row.mutant;
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
                    {"bytes_alone", mutant.bytes_alone},
                    {"killers", killers_json(row.killers)},
                    {"killers_without_claim", killers_json(row.without_claim)}});
    killed += row.killed() && mutant.proof.empty();
    equivalent += !mutant.proof.empty();
  }
  return {{"plan", request.plan},   {"every_case", request.every_case},
          {"mutants", rows.size()}, {"equivalent", equivalent},
          {"killed", killed},       {"rows", std::move(list)}};
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

namespace {

// For a file mutant: its kills without the claim to keep bytes.
std::string without_claim_text(const KillRow& row) {
  if (row.mutant->kind != MutantKind::format) return {};
  const std::string title = "             without its claim: ";
  if (!row.mutant->bytes_alone.empty()) return title + "right, but for its bytes\n";
  if (row.without_claim.empty()) return title + "LIVES\n";
  const Killer& first = row.without_claim.front();
  return title + first.case_id + (first.where.empty() ? "" : ": " + first.where) + "\n";
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
    text += without_claim_text(row);
  }
  return text;
}

}  // namespace qcts::selftest
