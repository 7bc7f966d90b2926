// SPDX-License-Identifier: BSD-3-Clause
// One byte in, two or four out: kernels/avx2/dequantize/dequantize_scaled.h. Rounds like tinyq_scalar.cc.
#include "kernels/avx2/dequantize/dequantize_scaled.h"

namespace {

using namespace qcts::avx2;

void dequantize_tinyq(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const int8_t*>(qcts::in_plane(p, "int8_weights"));
  const void* scales = qcts::in_plane(p, "scales");
  for (int64_t n = first; n < last; ++n)
    scale_integers<Integers32, false>(p.w_dtype, codes + n * p.k, p.k, 0, one_element(p.w_dtype, scales, n),
                                      static_cast<char*>(p.y) + n * p.ldy_bytes);
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_tinyq_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_tinyq_avx2, dequantize_tinyq>(
        QCTS_OP_DEQUANTIZE, "tinyq", "avx2", "eight elements at a time; bound by writing the result");
