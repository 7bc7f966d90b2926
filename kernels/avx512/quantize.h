// SPDX-License-Identifier: BSD-3-Clause
// Helpers for the AVX-512 variants of quantize.
#pragma once

#include "kernels/avx2/quantize.h"
#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

// Does the same as the function in kernels/avx2/quantize.h, but takes 16-bit floats 32 at a time.
// The last 32 may overlap the floats before them.
[[maybe_unused]] uint32_t largest_magnitude_bits(uint32_t dtype, const char* row, int64_t count) {
  if (dtype == QCTS_F32 || count < 32) return avx2::largest_magnitude_bits(dtype, row, count);
  const __m512i mask = _mm512_set1_epi16(INT16_MAX);
  const auto magnitudes = [&](int64_t i) { return _mm512_and_si512(_mm512_loadu_si512(row + 2 * i), mask); };
  __m512i max = magnitudes(count - 32);
  for (int64_t i = 0; i + 32 < count; i += 32) max = _mm512_max_epu16(max, magnitudes(i));
  alignas(64) char lanes[64];
  _mm512_store_si512(lanes, max);
  return avx2::largest_magnitude_bits(dtype, lanes, 32);
}

// Packing four vectors leaves four bytes of each of them in every quarter.
// This function puts the bytes in order, one vector after the other.
[[maybe_unused]] [[gnu::always_inline]] inline __m512i in_order_of_packs(__m512i bytes) {
  return _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                                  bytes);
}

}  // namespace
}  // namespace qcts::avx512
