// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes int8 codes with a scale and a zero point, for the scalar variants of dequantize.
// The rounding follows torchao 0.18 quant_primitives.py, _dequantize_affine_no_dtype_check.
// The difference is exact. The product is rounded to float32, then to the weight's dtype.
// Two roundings are also correct for scales of the weight's dtype.
// The product then has at most 20 bits, so only the second rounding matters.
#pragma once

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace qcts::scalar {
namespace {

// The parameters of row n begin at first_parameter, and each serves `length` elements.
[[maybe_unused]] void dequantize_affine_row(const qcts_problem& p, uint32_t scale_dtype, int64_t n,
                                            int64_t first_parameter, int64_t length) {
  const auto* codes = static_cast<const int8_t*>(in_plane(p, "qdata")) + n * p.k;
  const auto* zero_points = static_cast<const int8_t*>(in_plane(p, "zero_point"));
  const void* scales = in_plane(p, "scale");
  char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
  for (int64_t k = 0; k < p.k; ++k) {
    const int64_t at = first_parameter + k / length;
    store(p.w_dtype, row, k, static_cast<float>(codes[k] - zero_points[at]) * load(scale_dtype, scales, at));
  }
}

[[maybe_unused]] void dequantize_affine_rows(const qcts_problem& p, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) dequantize_affine_row(p, QCTS_F32, n, n, p.k);
}
[[maybe_unused]] void dequantize_affine_tensor(const qcts_problem& p, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) dequantize_affine_row(p, QCTS_F32, n, 0, p.k);
}
// For intx: a group may be the whole row, and scales may have the weight's dtype.
[[maybe_unused]] void dequantize_affine_groups(const qcts_problem& p, int64_t first, int64_t last) {
  const int64_t length = p.group != 0 ? p.group : p.k;
  const uint32_t dtype = plane_dtype(p.planes, p.n_planes, "scale");
  for (int64_t n = first; n < last; ++n) dequantize_affine_row(p, dtype, n, n * (p.k / length), length);
}

}  // namespace
}  // namespace qcts::scalar
