// SPDX-License-Identifier: BSD-3-Clause
// A plan: which cases a run takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/case_id.h"
#include "suites/inputs/synthetic.h"

namespace qcts {

inline constexpr const char* kDefaultPlan = "default";   // what a run asks where nothing else is said
inline constexpr const char* kCompletePlan = "nightly";  // what mustpass and the floor are counted on
inline constexpr const char* kFullPlan = "full";         // where an exact id is looked for last

// One field a choice; suites/plans/<name>.json has the same keys, all of them but `cover`,
// `schemes_an_input`, `once_a_family`, `best_variant_alone`, `determinism_once`, `emulated_once` and `kills`,
// and no other. Those from latency_ops on are wanted where the kinds name latency.
struct Plan {
  std::string name;
  std::string description;
  std::vector<Kind> kinds;
  bool all_variants =
      true;  // every candidate; false: of each provider only the best (suites/cases/best_variants.h)
  bool every_input = true;  // false: one shape and one m of each input family
  // Inputs are dealt over the schemes of a family that has more, so that each is put to about so many of
  // them, and no scheme goes without; absent: every input to every scheme.
  std::optional<int64_t> schemes_an_input;
  // Input families of which a family of schemes is given one input for each kind, operation, layout and
  // policy: those that take long and ask the same of every scheme.
  std::vector<Generator> once_a_family;
  // Input families of which each provider's best variant alone is asked, and no emulated one:
  // those that take longest.
  std::vector<Generator> best_variant_alone;
  // Determinism is asked of one input of every input family in the same way: it is a property of kernels.
  bool determinism_once = false;
  // Emulated variants are given one input of every input family in the same way: they are the native kernels.
  bool emulated_once = false;
  // Where it stands, of goldens only the first of each scheme are
  // judged, and those of --fixtures; and these ids, whatever that and every_input leave out.
  std::optional<std::vector<std::string>> cover;
  std::vector<std::string> kills;  // kinds of mutants that the cases kill completely; empty: all kinds
  double case_timeout_s = 60;      // the watchdog's patience with one case
  double latency_budget_s = 0;     // for all latency cases together
  std::vector<int64_t> latency_m;
  std::vector<std::pair<int64_t, int64_t>> latency_shapes;  // n, k
  std::vector<Op> latency_ops;
  std::vector<std::string> latency_schemes;      // names; empty: every scheme
  std::vector<std::string> latency_activations;  // of linear and quantize_activation; empty: every policy
  std::vector<std::string> latency_weights;      // of "cold", "warm"
  bool latency_best_only = false;  // of each provider only the best (suites/cases/best_variants.h)
};
Plan load_plan(const std::filesystem::path& path);  // throws std::runtime_error naming file and field

}  // namespace qcts
