// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Int4PlainInt32Tensor: codes 0 .. 15, the even k in the low nibble, and an integer zero point.
// (code - zero_point) * scale has at most 19 bits, so the only rounding is to the weight's dtype.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_int4_int32(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* zero_points = static_cast<const int8_t*>(qcts::in_plane(p, "zero_point"));
  const void* scales = qcts::in_plane(p, "scale");
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t at = k / p.group * p.n + n;
      const uint8_t pair = pairs[(n * p.k + k) / 2];
      const int code = (k % 2 == 0 ? pair & 15 : pair >> 4) - zero_points[at];
      store(p.w_dtype, row, k, static_cast<float>(code) * load(p.w_dtype, scales, at));
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_int32_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_int4_int32_scalar, dequantize_int4_int32>(
        QCTS_OP_DEQUANTIZE, "int4_int32", "scalar", "one multiplication and one rounding per element");
