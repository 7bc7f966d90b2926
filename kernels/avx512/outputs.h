// SPDX-License-Identifier: BSD-3-Clause
// Stores finished sums, for the AVX-512 variants of `linear`: bias, rounding and tails.
#pragma once

#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

constexpr int kColumns = 64;  // columns of a block

// Stores y = total * factor + bias, rounded once to float32 and then to the dtype of y.
// Stores `rows` rows, starting at first_m, and up to kColumns columns, starting at first_n.
[[maybe_unused]] void store_rows(const qcts_problem& p, int64_t first_m, int64_t rows, int64_t first_n,
                                 float factor, const float (*totals)[kColumns]) {
  const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
  const int64_t y_bytes = dtype_bytes(p.y_dtype), bias_bytes = dtype_bytes(p.bias_dtype);
  for (int64_t m = 0; m < rows; ++m) {
    char* y = static_cast<char*>(p.y) + (first_m + m) * p.ldy_bytes + first_n * y_bytes;
    for (int64_t n = 0; n < columns; n += kLanes) {
      const int64_t some = columns - n < kLanes ? columns - n : kLanes;
      const __m512 total = _mm512_loadu_ps(&totals[m][n]);
      __m512 value = _mm512_mul_ps(total, _mm512_set1_ps(factor));
      if (p.bias != nullptr) {
        const char* at = static_cast<const char*>(p.bias) + (first_n + n) * bias_bytes;
        const __m512 bias = some == kLanes ? load16(p.bias_dtype, at) : load_some(p.bias_dtype, at, some);
        value = _mm512_fmadd_ps(total, _mm512_set1_ps(factor), bias);
      }
      if (some == kLanes) {
        store16(p.y_dtype, y + n * y_bytes, value);
      } else {
        store_some(p.y_dtype, y + n * y_bytes, value, some);
      }
    }
  }
}

}  // namespace
}  // namespace qcts::avx512
