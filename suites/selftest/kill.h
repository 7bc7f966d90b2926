// SPDX-License-Identifier: BSD-3-Clause
// Measures the judge's strength: each mutant is judged like any other provider and must fail.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "suites/cases/plan.h"
#include "suites/selftest/mutant_list.h"

namespace qcts::selftest {

struct KillRequest {
  std::string plan = kCompletePlan;
  std::vector<std::string> mutants;  // globs over the ids of mutants; empty: all
  std::vector<MutantKind> kinds;     // empty: the plan's `kills`
  std::vector<std::string> cases;    // globs over case ids; empty: all
  std::string set = "all";           // "open", "held", "all"
  bool every_case = false;           // true: judge all cases and diagnose none; false: stop at the first kill
  unsigned jobs = 1;                 // number of workers at a time if every_case
  uint64_t seed = 0;
};

struct Killer {
  std::string case_id;
  std::string status;  // "fail", "crash", "timeout"
  std::string reason;
  std::string where;  // the first difference: "optimizer.param_groups[0].lr"
};

// One row of the matrix. A file mutant is judged twice.
// With the claim that the mutant keeps a file's bytes, any changed byte is wrong (E3).
// Without the claim, the judge has to notice the values that the mutant loses (E2).
struct KillRow {
  const MutantInfo* mutant = nullptr;
  std::vector<Killer> killers;  // in the order of judging
  std::vector<Killer> without_claim;
  size_t judged = 0;     // number of cases with a verdict other than not_supported
  double to_kill_s = 0;  // time from the start of the mutant's worker to the first kill
  double wall_s = 0;
  std::string problem;  // the reason why the mutant could not be judged
  bool needs_both() const { return mutant->kind == MutantKind::format && mutant->bytes_alone.empty(); }
  bool killed() const { return !killers.empty() && (!needs_both() || !without_claim.empty()); }
};

// Returns the kinds of mutants to judge; empty: all kinds. Throws RunError if the plan does not exist.
std::vector<MutantKind> mutant_kinds(const KillRequest& request);
bool selects_any(const KillRequest& request);

// Judges every mutant that the request selects and calls `on_row` after each.
// Throws RunError if the plan does not exist, and std::runtime_error if the library of mutants is missing.
std::vector<KillRow> kill(const KillRequest& request, const std::function<void(const KillRow&)>& on_row);

// Plants several faults at once ("a+b", only faults of kind kernel) and returns their one row.
// If `faults` is empty, the unchanged code is judged like a mutant of `kind`, and the cases that fail are in
// both lists of killers. The row's `mutant` is the first of them.
KillRow kill_together(const KillRequest& request, const std::string& faults,
                      MutantKind kind = MutantKind::kernel);

// Returns the rows of mutants that survived and are not equivalent.
std::vector<const KillRow*> survivors(const std::vector<KillRow>& rows);

// Returns cases that together kill every killed mutant of kind kernel or format.
// Uses greedy set cover (Chvatal 1979). Needs rows that were made with every_case.
// Each step takes the case that kills the largest number of the remaining mutants.
// Among equal cases, a step takes the first by id.
std::vector<std::string> greedy_cover(const std::vector<KillRow>& rows);

nlohmann::ordered_json to_json(const KillRequest& request, const std::vector<KillRow>& rows);
std::string matrix_text(const std::vector<KillRow>& rows);

}  // namespace qcts::selftest
