// SPDX-License-Identifier: BSD-3-Clause
// The weight is not quantized: its rows are copied.
#include <cstring>

#include "kernels/families/elements.h"
#include "kernels/families/entry.h"

namespace {

void copy_weight(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* weight = static_cast<const char*>(qcts::in_plane(p, "original_weight"));
  const int64_t row_bytes = p.k * qcts::dtype_bytes(p.w_dtype);
  for (int64_t n = first; n < last; ++n)
    std::memcpy(static_cast<char*>(p.y) + n * p.ldy_bytes, weight + n * row_bytes,
                static_cast<size_t>(row_bytes));
}

}  // namespace

const qcts_kernel qcts_kernel_dequantize_float_weight_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_float_weight_scalar, copy_weight>(
        QCTS_OP_DEQUANTIZE, "float_weight", "scalar", "copied rows; bound by memory");
