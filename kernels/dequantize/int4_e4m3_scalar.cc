// SPDX-License-Identifier: BSD-3-Clause
// torchao 0.18 Int4PreshuffledTensor for float8 x, in layout "plain": signed codes, the even k in the low
// nibble. The code times the group's float8 scale is rounded to float8, as in MSLK's table, then multiplied
// by the row's scale.
#include "kernels/families/entry.h"
#include "kernels/scalar/int4_e4m3.h"

namespace {

using namespace qcts::scalar;

void dequantize_int4_e4m3(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(qcts::in_plane(p, "scale"));
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float row_scale = load(QCTS_F32, qcts::in_plane(p, "row_scale"), n);
    for (int64_t g = 0; g < p.k / p.group; ++g) {
      const float scale = e4m3fn_to_f32(scales[g * p.n + n]);
      float table[16];  // indexed by nibble
      for (int code = -8; code < 8; ++code) table[code & 15] = int4_e4m3_value(code, scale);
      for (int64_t k = g * p.group; k < (g + 1) * p.group; ++k) {
        const uint8_t pair = pairs[(n * p.k + k) / 2];
        store(p.w_dtype, row, k, table[k % 2 == 0 ? pair & 15 : pair >> 4] * row_scale);
      }
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_e4m3_scalar = qcts::exact_rows<
    qcts_kernel_dequantize_int4_e4m3_scalar, dequantize_int4_e4m3>(
    QCTS_OP_DEQUANTIZE, "int4_e4m3", "scalar",
    "a table of sixteen products per group; one look-up, one multiplication and one rounding per element");
