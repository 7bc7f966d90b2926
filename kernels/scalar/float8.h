// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes float8 codes with float32 scales, for the scalar variants of dequantize.
// The rounding follows torchao 0.18 Float8Tensor.dequantize (quant_primitives.py: _dequantize_affine_float8).
// A scale serves the tensor, a block of 128 x 128, a row or a group of a row.
// The product of the code, as float32, and the scale is rounded to float32, then to the weight's dtype.
#pragma once

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace qcts::scalar {
namespace {

[[maybe_unused]] void dequantize_float8(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const void* scales = in_plane(p, "scale");
  const qcts_scheme_params& params = scheme_params(p);
  const bool e5m2 = params.element_dtype == QCTS_F8_E5M2;
  const int64_t rows = params.group_rows != 0 ? params.group_rows : p.n;
  const int64_t length = p.group != 0 ? p.group : p.k;
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const uint8_t code = codes[n * p.k + k];
      const float scale = load(QCTS_F32, scales, n / rows * (p.k / length) + k / length);
      store(p.w_dtype, row, k, (e5m2 ? e5m2_to_f32(code) : e4m3fn_to_f32(code)) * scale);
    }
  }
}

}  // namespace
}  // namespace qcts::scalar
