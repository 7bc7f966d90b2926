// Latency targets: suites/targets/<machine class>.json. A class that has no file is measured and reported,
// not gated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/machine.h"

namespace qcts {

// "amd_epyc_avx2": the words of the model, then the widest instructions.
std::string machine_class(const Machine& machine);

struct LatencyTarget {
  std::string op, scheme, variant;  // scheme: name or family
  int64_t m_most = 0;               // applies to m <= m_most; 0: every m, and ops without m
  std::string measure;              // "share_of_probe", "ratio_to_dense", "warm_ratio_to_dense"
  double at_least = 0;
  std::string reason;  // where the number comes from
};

struct LatencyTargets {
  std::string machine_class;
  bool listed = false;  // false: there is no file for the class
  std::vector<LatencyTarget> targets;
};

// Throws std::runtime_error naming file and field.
LatencyTargets load_latency_targets(const std::filesystem::path& folder, const std::string& machine_class);

bool applies(const LatencyTarget& target, std::string_view op, std::string_view scheme,
             std::string_view family, std::string_view variant, int64_t m);

}  // namespace qcts
