// SPDX-License-Identifier: BSD-3-Clause
// MSLK int4_row_quantize_zp and, for int4_plain_sym, int4_row_quantize (fbgemm-gpu-genai 1.4.2 quantize.py).
// Everything is computed in float32; scale and zero are rounded to the weight's dtype when stored. A step
// that is NaN gets code 0.
#include <math.h>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

struct PlainGroup {
  float scale, zero, min;
};

PlainGroup plain_group(const qcts_problem& p, const char* row, int64_t first, bool symmetric) {
  float low = load(p.w_dtype, row, first), high = low;
  for (int64_t k = first; k < first + p.group; ++k) {
    const float w = load(p.w_dtype, row, k);
    if (w != w) return {w, symmetric ? 0 : w, symmetric ? 0 : w};
    low = w < low ? w : low;
    high = w > high ? w : high;
  }
  const float size = symmetric ? (fabsf(low) < fabsf(high) ? fabsf(high) : fabsf(low)) : high - low;
  const float scale = (size < 1e-6f ? 1e-6f : size) / (symmetric ? 8.0f : 15.0f);
  if (symmetric) return {scale, 0, 0};
  return {scale, low + scale * 8.0f, low};
}

uint8_t plain_code(float w, const PlainGroup& group, bool symmetric) {
  const float steps = nearbyintf((w - group.min) / group.scale);
  if (steps != steps) return 0;
  const float min = symmetric ? -8.0f : 0.0f, max = min + 15.0f;
  const float kept = steps < min ? min : steps > max ? max : steps;
  return static_cast<uint8_t>(static_cast<int>(symmetric ? kept : kept - 8.0f) & 15);
}

void quantize_int4_plain(const qcts_problem& p, int64_t first, int64_t last) {
  auto* pairs = static_cast<uint8_t*>(qcts::out_plane(p, "qdata"));
  void *scales = qcts::out_plane(p, "scale"), *zeros = qcts::out_plane(p, "zero_point");
  const bool symmetric = qcts::scheme_params(p).mapping == QCTS_SYMMETRIC;
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    PlainGroup group = {};
    for (int64_t k = 0; k < p.k; k += 2) {
      if (k % p.group == 0) {
        group = plain_group(p, row, k, symmetric);
        store(p.w_dtype, scales, k / p.group * p.n + n, group.scale);
        store(p.w_dtype, zeros, k / p.group * p.n + n, group.zero);
      }
      const uint8_t even = plain_code(load(p.w_dtype, row, k), group, symmetric),
                    odd = plain_code(load(p.w_dtype, row, k + 1), group, symmetric);
      pairs[(n * p.k + k) / 2] = static_cast<uint8_t>(even | odd << 4);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_int4_plain_scalar =
    qcts::exact_rows<qcts_kernel_quantize_int4_plain_scalar, quantize_int4_plain>(
        QCTS_OP_QUANTIZE, "int4_plain", "scalar", "two passes per group; bound by one division per element");
