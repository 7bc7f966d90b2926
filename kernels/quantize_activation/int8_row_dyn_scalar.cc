// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8, symmetric or asymmetric, one element at a time: first the row's range, unless
// the scale is given, then the codes.
#include "kernels/families/entry.h"
#include "kernels/scalar/int8.h"

namespace {

void quantize_int8_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(qcts::out_plane(p, "qdata"));
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    qcts::store_row_scale(p, m, qcts::scalar::quantize_int8_row(p, row, qdata + m * p.k));
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_scalar = qcts::activation_rows<
    qcts_kernel_quantize_activation_int8_row_dyn_scalar, quantize_int8_rows>(
    qcts::kInt8RowX, "scalar",
    "a row's range, unless the scale is given, then codes; bound by float rounding, one element at a time");
