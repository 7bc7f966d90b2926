// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Int8Tensor.from_hp per row (quant_primitives.py: _choose_qparams_affine SYMMETRIC,
// _quantize_affine), in two passes over a row that stays in cache. The reciprocal and the product round
// separately, as in the original.
#include "kernels/families/entry.h"
#include "kernels/scalar/int8.h"

namespace {

using namespace qcts::scalar;

// (127 - -128) / 2 in the weight's dtype; at least float32's epsilon 2^-23.
float row_scale(uint32_t dtype, float absmax) {
  const float scale = round_to(dtype, absmax / 127.5f);
  return scale < 0x1p-23f ? 0x1p-23f : scale;
}

// A NaN, which only a non-finite row gives, becomes 0.
int8_t code_of(float scaled) {
  const float rounded = nearbyintf(scaled);
  if (!(rounded > -128)) return rounded <= -128 ? -128 : 0;
  return static_cast<int8_t>(rounded < 127 ? rounded : 127);
}

void quantize_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* codes = static_cast<int8_t*>(qcts::out_plane(p, "qdata"));
  auto* zero_points = static_cast<int8_t*>(qcts::out_plane(p, "zero_point"));
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float scale = row_scale(p.w_dtype, absolute_maximum(p.w_dtype, row, p.k));
    const float reciprocal = 1.0f / scale;
    for (int64_t k = 0; k < p.k; ++k) codes[n * p.k + k] = code_of(load(p.w_dtype, row, k) * reciprocal);
    store(QCTS_F32, qcts::out_plane(p, "scale"), n, scale);
    zero_points[n] = 0;
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int8_row_scalar =
    qcts::exact_rows<qcts_kernel_quantize_int8_row_scalar, quantize_rows>(
        QCTS_OP_QUANTIZE, "int8_row", "scalar",
        "two passes per row: absolute maximum, then codes; bound by float rounding, one element at a time");
