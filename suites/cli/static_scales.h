// SPDX-License-Identifier: BSD-3-Clause
// The scales of static activations, which no weight tells: `qcts quantize` takes them from its command line.
#pragma once

#include <optional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "reference/schemes/scheme.h"

namespace qcts::cli {

// As a calibration gave them; one of each for every layer that is quantized.
struct StaticScales {
  std::optional<float> activation, output;  // x / scale becomes the code; float32, finite and above 0
  std::optional<int> zero_point;            // -128 .. 127
};

void add_static_options(CLI::App& command, StaticScales& scales);

// The planes of Scheme::policy_specs(), filled. Throws UsageError when the policy needs a scale that is not
// given, is given one that it has no place for, or stores what no option says (act_pre_scale: a vector for
// each layer).
Planes static_planes(const Scheme& scheme, Policy activation, const StaticScales& scales);

}  // namespace qcts::cli
