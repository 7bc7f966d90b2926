// One question with one answer. expand() is pure: the same goldens, plan and registry give the same sorted
// cases with unique ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fixtures/golden.h"
#include "kernels/registry.h"
#include "reference/schemes/scheme.h"

namespace qcts {

enum class Kind : uint8_t { round_trip, assign, reject, size, numerics, determinism, latency };
inline constexpr int kKindCount = static_cast<int>(Kind::latency) + 1;
std::string_view kind_name(Kind kind);
std::optional<Kind> kind_from_name(std::string_view name);

// What a provider that runs saved programs is called in the place of a kernel's variant.
inline constexpr const char* kProgramVariant = "program";
// The provider of a program's round trip where no plug-in runs programs: the suite's own readers declined
// nothing.
inline constexpr const char* kAbsentRunner = "absent";
// A golden with a program in it, by its flags.
bool is_program(const Golden& golden);

// Rows of x from which on a linear is called prefill: it is bound by arithmetic, and a scalar one is not
// timed.
inline constexpr int64_t kPrefillRows = 32;

// An input that is made at run time, from a seed.
struct Synthetic {
  std::string generator;  // "noise", "exact_sums", "one_hot", ...: suites/inputs/inputs.cc has the table
  WeightShape weight;
  int64_t m = 1;
  uint64_t seed = 0;
  std::string activation{kWeightOnly};  // linear and quantize_activation: one of the scheme's policies
};

struct Case {
  std::string id;  // kind.op/scheme/input, alphabet [a-z0-9_/.]; no provider
  Kind kind = Kind::numerics;
  std::string op;  // "file", "quantize", "quantize_activation", "dequantize", "pack", "unpack", "linear"
  const Scheme* scheme =
      nullptr;  // nullptr for files that mix schemes or hold none: "mixed", "plain" or "any" in the id
  const Golden* golden = nullptr;        // set for cases that judge a file or use one as evidence
  std::string tensor;                    // the golden's tensor in question, for numerics on a golden
  const Malformed* malformed = nullptr;  // reject
  std::optional<Synthetic> synthetic;
  std::string layout;                   // pack and unpack
  std::string activation{kWeightOnly};  // linear and quantize_activation
  bool warm = false;  // latency: one copy of what is read, in the caches, instead of copies that take turns
  const Implementation* implementation = nullptr;  // the kernel to judge; nullptr for cases that judge files
  // round_trip of a TorchScript golden: who loads, runs and saves it. nullptr: the case stands in for
  // providers that are not there, and its verdict is not_supported.
  const qcts_provider* runner = nullptr;

  bool judges_file() const { return implementation == nullptr && runner == nullptr; }
  std::string provider()
      const;  // "qcts" for cases that judge files, kAbsentRunner where nobody runs a program
  std::string variant() const;  // "" for those, kProgramVariant for a runner
  std::string full_id() const;  // id, "/provider_variant" appended where there is a provider
};

// One field a choice; suites/plans/<name>.json has the same keys, all of them but `cover` and
// `schemes_an_input`, and no other. Those from latency_ops on are wanted
// where the kinds name latency.
struct Plan {
  std::string name;
  std::string description;
  std::vector<Kind> kinds;
  bool all_variants = true;  // every candidate; false: of each provider only the best (suites/cases/rivals.h)
  bool every_input = true;   // false: one shape and one m of each input family
  // Inputs are dealt over the schemes of a family that has more, so that each is put to about so many of
  // them, and no scheme goes without; absent: every input to every scheme.
  std::optional<int64_t> schemes_an_input;
  // Where it stands, of goldens only the first of each scheme are
  // judged, and those of --fixtures; and these ids, whatever that and every_input leave out.
  std::optional<std::vector<std::string>> cover;
  double case_timeout_s = 60;   // the watchdog's patience with one case
  double latency_budget_s = 0;  // for all latency cases together
  std::vector<int64_t> latency_m;
  std::vector<std::pair<int64_t, int64_t>> latency_shapes;  // n, k
  std::vector<std::string> latency_ops;                     // of "quantize", ..., "linear"
  std::vector<std::string> latency_schemes;                 // names; empty: every scheme
  std::vector<std::string> latency_activations;  // of linear and quantize_activation; empty: every policy
  std::vector<std::string> latency_weights;      // of "cold", "warm"
  bool latency_best_only = false;                // of each provider only the best (suites/cases/rivals.h)
};
Plan load_plan(const std::filesystem::path& path);  // throws std::runtime_error naming file and field

struct CaseSources {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  const Registry* registry = nullptr;
  // Synthetic inputs for the reference as well, whose own answers they are wanted to have: that says nothing
  // of the reference, but of the cases, which must not accuse it.
  bool reference_too = false;
};
// Sorted by full_id, which is unique. Throws std::runtime_error when two cases share a full_id or an id
// leaves the alphabet.
std::vector<Case> expand(const Plan& plan, const CaseSources& sources);

// kind.op/scheme/input -> its parts; nullopt when it is no case id.
struct CaseIdParts {
  std::string kind, op, scheme, input;
};
std::optional<CaseIdParts> parse_case_id(std::string_view id);

// The share of a latency case in the plan's budget: a prefill has fewer and longer calls.
double latency_weight(std::string_view case_id);

}  // namespace qcts
