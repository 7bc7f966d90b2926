// SPDX-License-Identifier: BSD-3-Clause
// TinyQ 006b7b9: W8A32LinearLayer.quantize (max|w| / 127 in double, stored as float; code = round(w / s),
// clamped) and W8A16LinearLayer.quantize (scale and quotient rounded to the weight's dtype, no clamp: 128
// wraps to -128).
#include "kernels/families/entry.h"
#include "kernels/scalar/int8.h"

namespace {

using namespace qcts::scalar;

// The low byte of the int32 conversion, which gives 0x80000000 for values that do not fit.
int8_t low_byte(float rounded) {
  const bool fits = rounded >= -2147483648.0f && rounded < 2147483648.0f;
  return fits ? static_cast<int8_t>(static_cast<uint32_t>(static_cast<int32_t>(rounded)) & 0xFF) : 0;
}

int8_t clamped_code(float w, float scale) {
  const float rounded = nearbyintf(w / scale);
  if (rounded != rounded) return 0;
  return static_cast<int8_t>(rounded > 127 ? 127 : rounded < -128 ? -128 : rounded);
}

void quantize_tinyq(const qcts_problem& p, int64_t first, int64_t last) {
  const bool clamped = (qcts::scheme_params(p).flags & QCTS_SCHEME_CODES_WRAP) == 0;
  auto* codes = static_cast<int8_t*>(qcts::out_plane(p, "int8_weights"));
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float maximum = absolute_maximum(p.w_dtype, row, p.k);
    const float scale = clamped ? static_cast<float>(static_cast<double>(maximum) / 127)
                                : round_to(p.w_dtype, maximum / 127.0f);
    for (int64_t k = 0; k < p.k; ++k) {
      const float w = load(p.w_dtype, row, k);
      codes[n * p.k + k] =
          clamped ? clamped_code(w, scale) : low_byte(nearbyintf(round_to(p.w_dtype, w / scale)));
    }
    store(p.w_dtype, qcts::out_plane(p, "scales"), n, scale);
    if (clamped) store(QCTS_F32, qcts::out_plane(p, "zero_points"), n, 0);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_tinyq_scalar =
    qcts::exact_rows<qcts_kernel_quantize_tinyq_scalar, quantize_tinyq>(
        QCTS_OP_QUANTIZE, "tinyq", "scalar",
        "two passes per row: absolute maximum, then one division per code; bound by the division");
