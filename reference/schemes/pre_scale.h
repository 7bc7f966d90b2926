// SPDX-License-Identifier: BSD-3-Clause
// act_pre_scale of torchao's tensors (AWQ, SmoothQuant): x is first multiplied by a factor per column.
#pragma once

#include "reference/schemes/scheme.h"

namespace qcts {

inline constexpr std::string_view kPreScaled = "pre_";  // prefix of such policies' names

bool is_pre_scaled(Policy activation);
std::string_view without_pre_scale(Policy activation);  // "pre_dyn_row_sym" -> "dyn_row_sym"
PlaneSpec pre_scale_spec(const WeightShape& shape);     // specifies act_pre_scale [k] in the weight's dtype

// A calibration writes positive finite numbers: torchao 0.18.0 prototype/smoothquant/core.py,
// prototype/awq/core.py.
WrittenRange pre_scale_range(const WeightShape& shape);

// Returns the row-major elements of x * act_pre_scale, each rounded to x's dtype, which is also the plane's.
// Throws std::invalid_argument if the plane is missing or has another dtype or shape.
std::vector<std::byte> pre_scaled(const Matrix& x, const Planes& weight);

}  // namespace qcts
