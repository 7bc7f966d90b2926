// SPDX-License-Identifier: BSD-3-Clause
// Latency targets: suites/targets/<machine class>.json. A class that has no file is measured and reported,
// not gated.
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

// "amd_epyc_family25_avx2": the words of the model, its family (a cloud's model may name no more than the
// maker), then the widest instructions.
std::string machine_class(const Machine& machine);

struct LatencyTarget {
  std::string provider = "builtin";  // a variant is one provider's own: another's "avx2" is another kernel
  Op op = Op::file;                  // of a target, never Op::file
  std::string scheme, variant;       // scheme: name or family
  std::string activation = "weight_only";  // linear and quantize_activation
  bool warm = false;                       // "weights": "warm"; otherwise of cold ones
  int64_t m_least = 0, m_most = 0;         // of linear: m_least <= m <= m_most; 0: no limit
  std::string measure;                     // share_of_roof, share_of_probe, ratio_to_{dense,torch,static}
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

// To a case of that provider.
bool applies(const LatencyTarget& target, const Case& latency_case, std::string_view variant);

// A file of targets, as load_latency_targets reads it.
nlohmann::ordered_json targets_json(const LatencyTargets& targets);

// Targets that a provider's verdicts in report.json hold with room to spare: for each (op, scheme,
// activation, variant, decode or prefill, cold or warm) and each of its ratios, the lowest low end of an
// interval over all shapes and m, less `margin` (0.1: a tenth), down to two digits. Verdicts without an
// interval, that did not pass, or that are not to be trusted give none. Throws std::runtime_error naming what
// the report lacks.
LatencyTargets propose_targets(const nlohmann::ordered_json& report, const std::string& provider,
                               double margin);

// `proposed`, not empty and all of one provider, in the place of that provider's targets among `listed`,
// which are of the same machine class.
LatencyTargets replaced_targets(const LatencyTargets& listed, const LatencyTargets& proposed);

}  // namespace qcts
