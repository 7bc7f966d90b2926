// SPDX-License-Identifier: BSD-3-Clause
// Latency targets from suites/targets/<machine class>.json.
// Machines of a class without a file are measured and reported, but not gated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/machine/machine.h"
#include "suites/cases/case.h"

namespace qcts {

// Returns "amd_epyc_family25_avx2": the words of the CPU model, its family, and the widest instruction set.
// The result includes the family because a cloud's CPU model may name only the vendor.
std::string machine_class(const Machine& machine);
// Returns "nvidia_h100_80gb_hbm3": the words of the GPU's name.
std::string device_class(const std::string& gpu_name);

struct LatencyTarget {
  // Variants belong to a provider: another provider's "avx2" is another kernel.
  std::string provider = "builtin";
  Op op = Op::file;                        // op to which the target applies; never Op::file
  std::string scheme, variant;             // `scheme` is the name of a scheme or a family
  std::string activation = "weight_only";  // used by linear and quantize_activation
  bool warm = false;                       // true if the file has "weights": "warm"; otherwise cold
  int64_t m_min = 0, m_max = 0;            // linear: m_min <= m <= m_max; 0: no limit
  std::string measure;                     // share_of_roof, share_of_probe, ratio_to_{dense,torch,static}
  double at_least = 0;
  std::string reason;  // the source of the number
};

struct LatencyTargets {
  std::string machine_class;
  bool listed = false;  // false: there is no file for the class
  std::vector<LatencyTarget> targets;
};

// Throws std::runtime_error, which names the file and field.
LatencyTargets load_latency_targets(const std::filesystem::path& folder, const std::string& machine_class);

// Returns true if the target applies to a case of its provider.
bool applies(const LatencyTarget& target, const Case& latency_case, std::string_view variant);

// Returns the targets as the JSON that load_latency_targets reads.
nlohmann::ordered_json targets_json(const LatencyTargets& targets);

// Proposes targets that a provider's verdicts in report.json meet with a margin.
// Proposes one target for each ratio and each combination of
// op, scheme, activation, variant, decode or prefill, and cold or warm.
// A target is the lowest lower end of an interval over all shapes and m, minus `margin` (0.1: a tenth).
// A target is rounded down to two digits.
// Ignores verdicts that did not pass, are not trusted or have no interval.
// Throws std::runtime_error, which names the part that the report lacks.
LatencyTargets propose_targets(const nlohmann::ordered_json& report, const std::string& provider,
                               double margin);

// Replaces a provider's targets in `listed` by `proposed`, which must not be empty.
// All of `proposed` must belong to one provider and to the same machine class.
LatencyTargets replaced_targets(const LatencyTargets& listed, const LatencyTargets& proposed);

}  // namespace qcts
