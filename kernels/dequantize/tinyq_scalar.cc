// SPDX-License-Identifier: BSD-3-Clause
// TinyQ 006b7b9, w8_a32_forward: the code in float32 times the row's scale, rounded once. W8A16 has no such
// step; its linear multiplies by the same product, rounded to the dtype of its scales.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

void dequantize_tinyq(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const int8_t*>(qcts::in_plane(p, "int8_weights"));
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const float scale = load(p.w_dtype, qcts::in_plane(p, "scales"), n);
    for (int64_t k = 0; k < p.k; ++k)
      store(p.w_dtype, row, k, static_cast<float>(codes[n * p.k + k]) * scale);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_tinyq_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_tinyq_scalar, dequantize_tinyq>(
        QCTS_OP_DEQUANTIZE, "tinyq", "scalar", "one multiplication and one rounding per element");
