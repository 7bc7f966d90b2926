// SPDX-License-Identifier: BSD-3-Clause
// (code - 8) * scale + zero, rounded once to the weight's dtype, as the CUDA kernel's bfloat16 fma does. A
// group has 16 values, so they are computed exactly once per group and looked up.
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

using namespace qcts::scalar;

// The product of a 4-bit and a 24-bit integer is exact in double. The sum and the narrowing are rounded to
// odd, so the store's rounding to a 16-bit dtype is the only one. float32 has no spare bits for rounding to
// odd and is rounded directly from the double.
void fill_table(uint32_t dtype, float scale, float zero, float* table) {
  for (int code = 0; code < 16; ++code) {
    const double sum = add_to_odd(static_cast<double>(code - 8) * scale, zero);
    table[code] = dtype == QCTS_F32 ? static_cast<float>(sum) : round_to_odd(sum);
  }
}

void dequantize_tinygemm(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* pairs = static_cast<const uint8_t*>(qcts::in_plane(p, "qdata"));
  const void* scale_and_zero = qcts::in_plane(p, "scale_and_zero");
  float table[16];
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t k = 0; k < p.k; ++k) {
      if (k % p.group == 0) {
        const int64_t place = 2 * (k / p.group * p.n + n);
        fill_table(p.w_dtype, load(p.w_dtype, scale_and_zero, place),
                   load(p.w_dtype, scale_and_zero, place + 1), table);
      }
      const uint8_t pair = pairs[(n * p.k + k) / 2];
      store(p.w_dtype, row, k, table[k % 2 == 0 ? pair >> 4 : pair & 15]);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_int4_tinygemm_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_int4_tinygemm_scalar, dequantize_tinygemm>(
        QCTS_OP_DEQUANTIZE, "int4_tinygemm", "scalar",
        "16 exact values per group, then one lookup and one rounding per element");
