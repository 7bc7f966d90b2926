// One question with one answer. expand() is pure: the same goldens, plan and registry give the same sorted cases with unique ids.
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

// An input that is made at run time, from a seed.
struct Synthetic {
  std::string generator;  // "noise", "exact_sums", "one_hot", "halfway", "zero_rows", "all_codes", "extremes", ...
  WeightShape weight;
  int64_t m = 1;
  uint64_t seed = 0;
};

struct Case {
  std::string id;  // kind.op/scheme/input, alphabet [a-z0-9_/.]; no provider
  Kind kind = Kind::numerics;
  std::string op;      // "file", "quantize", "dequantize", "pack", "unpack", "linear"
  const Scheme* scheme = nullptr;  // nullptr for files that mix schemes
  const Golden* golden = nullptr;        // set for cases that judge a file or use one as evidence
  std::string tensor;                    // the golden's tensor in question, for numerics on a golden
  const Malformed* malformed = nullptr;  // reject
  std::optional<Synthetic> synthetic;
  std::string layout;                       // pack and unpack
  const Implementation* implementation = nullptr;  // the kernel to judge; nullptr for cases that judge files

  std::string full_id() const;  // id, "/provider_variant" appended where there is an implementation
};

struct Plan {
  std::string name;
  std::vector<Kind> kinds;
  bool all_variants = true;  // every candidate, not only the best
  double latency_budget_s = 0;
  // ... one field a choice; suites/plans/*.json says which
  std::vector<int64_t> latency_m;
  std::vector<std::pair<int64_t, int64_t>> latency_shapes;  // n, k
};
Plan load_plan(const std::filesystem::path& path);  // throws std::runtime_error naming the field

struct CaseSources {
  std::span<const Golden> goldens;
  std::span<const Malformed> malformed;
  const Registry* registry = nullptr;
};
std::vector<Case> expand(const Plan& plan, const CaseSources& sources);

}  // namespace qcts
