// SPDX-License-Identifier: BSD-3-Clause
// The scales of static activations, which cannot be derived from weights.
// `qcts quantize` takes the scales from its command line.
#pragma once

#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "reference/schemes/scheme.h"

namespace qcts::cli {

// Scales from a calibration, which are the same for every quantized layer.
struct StaticScales {
  std::optional<float> activation, output;  // x / scale becomes the code; float32, finite and above 0
  std::optional<int> zero_point;            // -128 .. 127
};

void add_static_options(CLI::App& command, StaticScales& scales);

// Returns the planes of Scheme::policy_specs(), filled.
// Throws UsageError if a scale that the policy needs is missing.
// Throws UsageError if a scale is given that the policy does not use.
// Throws UsageError if the policy stores a plane that no option sets.
// Such a plane is act_pre_scale, which is a vector per layer.
Planes static_planes(const Scheme& scheme, Policy activation, const StaticScales& scales);

}  // namespace qcts::cli
