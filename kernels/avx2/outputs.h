// SPDX-License-Identifier: BSD-3-Clause
// Writes y from the float totals of the 64 columns of a block, for `linear` with AVX2.
#pragma once

#include "kernels/avx2/elements.h"

namespace qcts::avx2 {
namespace {

constexpr int kColumns = 64, kVectors = kColumns / kLanes;

// Stores eight outputs of a row: total * factor + bias, rounded once to float32 and then to the dtype of y.
[[maybe_unused]] void store_outputs(const qcts_problem& p, int64_t m, int64_t n, __m256 total,
                                    __m256 factor) {
  const int64_t some = p.n - n < kLanes ? p.n - n : kLanes;
  __m256 value;
  if (p.bias != nullptr) {
    const char* bias = static_cast<const char*>(p.bias) + n * dtype_bytes(p.bias_dtype);
    value = _mm256_fmadd_ps(total, factor,
                            some == kLanes ? load8(p.bias_dtype, bias) : load_some(p.bias_dtype, bias, some));
  } else {
    value = _mm256_mul_ps(total, factor);
  }
  char* y = static_cast<char*>(p.y) + m * p.ldy_bytes + n * dtype_bytes(p.y_dtype);
  if (some == kLanes) {
    store8(p.y_dtype, y, value);
  } else {
    store_some(p.y_dtype, y, value, some);
  }
}

[[maybe_unused]] void store_rows(const qcts_problem& p, int64_t first_m, int64_t rows, int64_t first_n,
                                 float factor, const float (*totals)[kColumns]) {
  const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
  for (int64_t m = 0; m < rows; ++m)
    for (int64_t n = 0; n < columns; n += kLanes)
      store_outputs(p, first_m + m, first_n + n, _mm256_loadu_ps(&totals[m][n]), _mm256_set1_ps(factor));
}

// Widens 64 scales of dtype to float.
[[maybe_unused]] void widen_scales(uint32_t dtype, const uint8_t* at, float* out) {
  if (dtype == QCTS_F32) {
    std::memcpy(out, at, 4 * kColumns);
  } else if (dtype == QCTS_BF16) {
    for (int n = 0; n < kColumns; n += kLanes) _mm256_storeu_ps(out + n, load8(QCTS_BF16, at + 2 * n));
  } else {
    for (int n = 0; n < kColumns; n += kLanes) _mm256_storeu_ps(out + n, load8(QCTS_F16, at + 2 * n));
  }
}

}  // namespace
}  // namespace qcts::avx2
