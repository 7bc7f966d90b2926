// SPDX-License-Identifier: BSD-3-Clause
// A plan: the choice of cases for a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
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
inline constexpr const char* kFullPlan = "full";         // the plan that is searched last for an exact id

// Decoder blocks to time (suites/judge/latency/block.h), with every dimension divided by `shrink`.
inline constexpr int64_t kBlockShrinks[] = {1, 2, 4, 8, 16, 32};
struct LatencyBlocks {
  std::vector<std::string> schemes;  // names
  std::vector<int64_t> m;
  int64_t shrink = 1;
};

// The fields of suites/plans/<name>.json are its keys, and it has no other keys.
// The optional keys are `cover`, `schemes_per_input`, `determinism_share`, `once_a_family`,
// `schemes_a_family`, `other_dtypes_a_family`, `best_variant_alone`, `determinism_once`, `costly_share`,
// `emulated_once`, `far_schemes`, `emulated_never`, `emulated_share`, `emulated_once_a_family`, `kills`,
// `latency_blocks` and `latency_of_emulated`. The keys from latency_ops on are required if the kinds include
// latency.
struct Plan {
  std::string name;
  std::string description;
  std::vector<Kind> kinds;
  bool all_variants = true;  // false: only the best variant of each provider (suites/cases/best_variants.h)
  bool all_inputs = true;    // false: one shape and one m of each input family
  // Samples schemes: each input runs on about this many schemes of a family.
  // Every scheme gets at least one input. nullopt: every input runs on every scheme.
  std::optional<int64_t> schemes_per_input;
  // Determinism is a property of kernels more than of schemes. It is therefore tested on only one in this
  // many of the schemes of a family that share an input.
  // Every input stays with at least one scheme. Absent: determinism is tested on all of them.
  std::optional<int64_t> determinism_share;
  // Input families that run only once for each family of schemes, kind, operation, layout and policy.
  // Such families are slow and test the same thing on every scheme.
  std::vector<Generator> once_a_family;
  // Input families that run only on each provider's best variant and never on an emulated one.
  // Such families are the slowest.
  std::vector<Generator> best_variant_alone;
  // Input families that run, with all their inputs, on at most this many schemes of a family, for each kind,
  // operation, layout and policy, or on none if the number is 0. The cheapest schemes are chosen, and other
  // ones for another input family if they cost the same. A larger number keeps the schemes of a smaller one.
  std::map<Generator, int64_t> schemes_a_family;
  // The inputs that repeat a family in another dtype run on at most this many schemes of a family, chosen in
  // the same way. Absent: on all of them.
  std::optional<int64_t> other_dtypes_a_family;
  // Names of schemes whose linear is also judged on one weight of more than 2^32 bytes
  // (suites/inputs/far_weight.h), in each provider's best variant.
  std::vector<std::string> far_schemes;
  // If true, determinism is tested on one input of each input family.
  // The input is chosen as `once_a_family` chooses, but among the cheapest.
  // One input is enough because determinism is a property of kernels.
  bool determinism_once = false;
  // One in this many determinism cases, and every case of a provider with few schemes, also asks what costs
  // the most: a separate process (suites/judge/determinism/fresh_process.h), what hundreds of calls leave
  // behind, and many repeats with each number of threads.
  int64_t costly_share = 1;
  // If true, emulated variants run on one input of each input family, chosen in the same way.
  bool emulated_once = false;
  // Input families that emulated variants never run, because they take seconds each.
  std::vector<Generator> emulated_never;
  // Emulated variants run one in this many of the inputs of each policy that `emulated_once` chooses, and
  // skip determinism. Absent: they run all of them.
  std::optional<int64_t> emulated_share;
  // Input families that emulated variants run only twice: on a tall weight and on one that is not tall.
  std::vector<Generator> emulated_once_a_family;
  // If set, only the first golden of each scheme and the goldens of --fixtures are judged.
  // The case ids listed here are judged too, even if this rule or all_inputs leaves them out.
  std::optional<std::vector<std::string>> cover;
  std::vector<MutantKind> kills;  // kinds of mutants that the cases must kill; empty: all kinds
  double case_timeout_s = 60;     // watchdog timeout of one case
  double latency_budget_s = 0;    // budget of all latency cases together
  std::vector<int64_t> latency_m;
  std::vector<std::pair<int64_t, int64_t>> latency_shapes;  // pairs (n, k)
  std::vector<Op> latency_ops;
  std::vector<std::string> latency_schemes;       // names; empty: every scheme
  std::vector<std::string> latency_activations;   // for linear and quantize_activation; empty: every policy
  std::vector<std::string> latency_cache_states;  // "cold", "warm" or both
  std::optional<LatencyBlocks> latency_blocks;
  // If true, emulated variants are timed too. Their times mean nothing and test the stopwatch.
  bool latency_of_emulated = false;
  bool latency_best_only = false;  // only the best variant of each provider (suites/cases/best_variants.h)
};
Plan load_plan(const std::filesystem::path& path);  // throws std::runtime_error, which names file and field

}  // namespace qcts
