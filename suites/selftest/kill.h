// SPDX-License-Identifier: BSD-3-Clause
// How strong the judge is: each mutant is judged like anyone's work, and has to fail.
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
  std::vector<std::string> mutants;  // globs over ids; empty: all
  std::vector<MutantKind> kinds;     // empty: those of the plan's `kills`
  std::vector<std::string> cases;    // globs over case ids; empty: all
  std::string set = "all";           // "open", "held", "all"
  bool every_case = false;           // the whole matrix instead of the first kill
  unsigned jobs = 1;                 // workers at a time where every_case is set
  uint64_t seed = 0;
};

struct Killer {
  std::string case_id;
  std::string status;  // "fail", "crash", "timeout"
  std::string reason;
  std::string where;  // what differs first: "optimizer.param_groups[0].lr"
};

// One row of the matrix. A file mutant is judged twice: claiming that it keeps a file's bytes, so that any
// other byte is wrong (E3), and without the claim, so that what it loses has to be seen (E2).
struct KillRow {
  const MutantInfo* mutant = nullptr;
  std::vector<Killer> killers;  // in the order of judging
  std::vector<Killer> without_claim;
  size_t judged = 0;     // cases that gave a verdict other than not_supported
  double to_kill_s = 0;  // from the start of the mutant's worker to its first kill
  double wall_s = 0;
  std::string problem;  // why it could not be judged
  bool needs_both() const { return mutant->kind == MutantKind::format && mutant->bytes_alone.empty(); }
  bool killed() const { return !killers.empty() && (!needs_both() || !without_claim.empty()); }
};

// Returns the kinds of mutants to judge; empty: all. Throws RunError for a plan that is not there or that
// names an unknown kind.
std::vector<MutantKind> mutant_kinds(const KillRequest& request);
bool selects_any(const KillRequest& request);

// Judges every mutant that the request selects. Throws RunError for a plan that is not there,
// std::runtime_error when the library of mutants is missing. `on_row` is called after each.
std::vector<KillRow> kill(const KillRequest& request, const std::function<void(const KillRow&)>& on_row);

// One row with several faults planted at once, "a+b", all of kind kernel; "": none, judged as a mutant of
// `kind`, with any of its killers in both lists. Its `mutant` is the first.
KillRow kill_together(const KillRequest& request, const std::string& faults,
                      MutantKind kind = MutantKind::kernel);

// Mutants that are not equivalent and live.
std::vector<const KillRow*> survivors(const std::vector<KillRow>& rows);

// Cases that together kill every killed mutant of kind kernel or format, by greedy set cover (Chvatal 1979):
// the case that kills most of what is left, the first by id among equals. Needs rows of every_case.
std::vector<std::string> greedy_cover(const std::vector<KillRow>& rows);

nlohmann::ordered_json to_json(const KillRequest& request, const std::vector<KillRow>& rows);
std::string matrix_text(const std::vector<KillRow>& rows);

}  // namespace qcts::selftest
