// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Int4Tensor: signed codes, the even k in the low nibble. code * scale + zero is rounded once to
// the weight's dtype: in double the product is exact, and a sum that is rounded to odd then rounds like the
// exact one.
#include <math.h>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_int4_plain(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const void *scales = qcts::in_plane(p, "scale"), *zeros = qcts::in_plane(p, "zero_point");
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t at = k / p.group * p.n + n;
      const uint8_t pair = pairs[(n * p.k + k) / 2];
      const int nibble = k % 2 == 0 ? pair & 15 : pair >> 4, code = nibble >= 8 ? nibble - 16 : nibble;
      const float scale = load(p.w_dtype, scales, at), zero = load(p.w_dtype, zeros, at);
      if (p.w_dtype == QCTS_F32) {
        store(QCTS_F32, row, k, fmaf(static_cast<float>(code), scale, zero));
      } else {
        store_double(p.w_dtype, row, k, add_to_odd(static_cast<double>(code) * scale, zero));
      }
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_plain_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_int4_plain_scalar, dequantize_int4_plain>(
        QCTS_OP_DEQUANTIZE, "int4_plain", "scalar",
        "one fused multiplication and one rounding per element, in double");
