// SPDX-License-Identifier: BSD-3-Clause
// Decodes int4_e4m3 before the scale of the row is applied, for the scalar variants.
#pragma once

#include "kernels/families/block_scales.h"
#include "kernels/families/elements.h"

namespace qcts::scalar {
namespace {

// The product of the code and the scale of its group is rounded to e4m3,
// because a file stores a table of these products. Code 0 is 0 for every scale.
[[maybe_unused]] float int4_e4m3_value(int code, float scale) {
  if (code == 0) return 0;
  return e4m3fn_to_f32(small_float_code(SmallFloat::e4m3, static_cast<float>(code) * scale));
}

}  // namespace
}  // namespace qcts::scalar
