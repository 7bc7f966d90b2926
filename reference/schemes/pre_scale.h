// SPDX-License-Identifier: BSD-3-Clause
// act_pre_scale of torchao's tensors (AWQ, SmoothQuant): x * act_pre_scale, a factor for each column, before
// anything else is done to x.
#pragma once

#include "reference/schemes/scheme.h"

namespace qcts {

inline constexpr std::string_view kPreScaled = "pre_";  // what the names of such policies begin with

bool is_pre_scaled(Policy activation);
std::string_view without_pre_scale(Policy activation);  // "pre_dyn_row_sym" -> "dyn_row_sym"
PlaneSpec pre_scale_spec(const WeightShape& shape);     // act_pre_scale [k] in the weight's dtype

// Row-major elements of x, each product rounded to x's dtype, which is also that of plane act_pre_scale.
// Throws std::invalid_argument when the plane is missing or other than that.
std::vector<std::byte> pre_scaled(const Matrix& x, const Planes& weight);

}  // namespace qcts
