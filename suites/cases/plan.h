// SPDX-License-Identifier: BSD-3-Clause
// A plan: the choice of cases for a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/case_id.h"
#include "suites/cases/mutant_kind.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

inline constexpr const char* kDefaultPlan = "default";   // the plan of a run without --plan
inline constexpr const char* kCompletePlan = "nightly";  // the plan of mustpass and the floor
inline constexpr const char* kFullPlan = "full";         // searched last for an exact id

// suites/plans/<name>.json has these fields as its keys and no others. `cover`, `schemes_per_input`,
// `determinism_share`, `once_a_family`, `best_variant_alone`, `determinism_once`, `emulated_once`
// and `kills` are optional; the keys from latency_ops on are required if the kinds include latency.
struct Plan {
  std::string name;
  std::string description;
  std::vector<Kind> kinds;
  bool all_variants = true;  // false: only the best variant of each provider (suites/cases/best_variants.h)
  bool all_inputs = true;    // false: one shape and one m of each input family
  // Samples schemes: each input runs on about this many schemes of a family, and every scheme gets at least
  // one input; absent: every input runs on every scheme.
  std::optional<int64_t> schemes_per_input;
  // Test determinism, which is a property of kernels more than of schemes, on one in this many of the schemes
  // of a family that share an input; every input stays with one. Absent: on all of them.
  std::optional<int64_t> determinism_share;
  // Input families with only one input for each family of schemes, kind, operation, layout and policy: those
  // that are slow and test the same thing on every scheme.
  std::vector<Generator> once_a_family;
  // Input families that run only on each provider's best variant, never on an emulated one: the slowest.
  std::vector<Generator> best_variant_alone;
  // Test determinism on one input of each input family, chosen in the same way among the cheapest: it is a
  // property of kernels.
  bool determinism_once = false;
  // Run emulated variants on one input of each input family, chosen in the same way: their code is that of
  // the native kernels.
  bool emulated_once = false;
  // If set: of the goldens, judge only the first of each scheme and those of --fixtures, plus these case ids,
  // even those that this or all_inputs leaves out.
  std::optional<std::vector<std::string>> cover;
  std::vector<MutantKind> kills;  // kinds of mutants of which the cases kill all; empty: all kinds
  double case_timeout_s = 60;     // watchdog timeout of one case
  double latency_budget_s = 0;    // for all latency cases together
  std::vector<int64_t> latency_m;
  std::vector<std::pair<int64_t, int64_t>> latency_shapes;  // n, k
  std::vector<Op> latency_ops;
  std::vector<std::string> latency_schemes;       // names; empty: every scheme
  std::vector<std::string> latency_activations;   // for linear and quantize_activation; empty: every policy
  std::vector<std::string> latency_cache_states;  // "cold", "warm" or both
  bool latency_best_only = false;  // only the best variant of each provider (suites/cases/best_variants.h)
};
Plan load_plan(const std::filesystem::path& path);  // throws std::runtime_error naming file and field

}  // namespace qcts
