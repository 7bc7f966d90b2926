// SPDX-License-Identifier: BSD-3-Clause
// Converts int8 codes times a scale to bfloat16, for the AVX-512 variants of dequantize.
// 32 codes take 13 operations here and 32 operations in kernels/avx2/dequantize/dequantize_scaled.h.
// One permutation gathers the upper halves that hold the rounded results.
// The AVX2 file explains the method and does the rest.
#pragma once

#include "kernels/avx2/dequantize/dequantize_scaled.h"
#include "kernels/avx512/elements.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

[[gnu::always_inline]] inline __m512i scaled_bf16(const int8_t* codes, __m512i below_512, __m512 scale) {
  const __m512i exponent = _mm512_set1_epi16(0x4B00);
  const auto rounded = [&](__m512i bits) {
    const __m512 code = _mm512_sub_ps(_mm512_castsi512_ps(bits), _mm512_set1_ps(0x1p23f + 512));
    return _mm512_castps_si512(bf16_rounded(_mm512_mul_ps(code, scale)));
  };
  const __m512i above = _mm512_sub_epi16(
      _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes))), below_512);
  // The words 2 * i + 1. Four words of the first vector and four of the second alternate,
  // because unpacking split each eight elements.
  const __m512i upper_halves =
      _mm512_setr_epi32(1 | 3 << 16, 5 | 7 << 16, 33 | 35 << 16, 37 | 39 << 16, 9 | 11 << 16, 13 | 15 << 16,
                        41 | 43 << 16, 45 | 47 << 16, 17 | 19 << 16, 21 | 23 << 16, 49 | 51 << 16,
                        53 | 55 << 16, 25 | 27 << 16, 29 | 31 << 16, 57 | 59 << 16, 61 | 63 << 16);
  return _mm512_permutex2var_epi16(rounded(_mm512_unpacklo_epi16(above, exponent)), upper_halves,
                                   rounded(_mm512_unpackhi_epi16(above, exponent)));
}

struct WideIntegers {
  template <bool kPastCaches>
  [[gnu::always_inline]] static int64_t scale_to_bf16(const int8_t* codes, int64_t count,
                                                      int32_t below_512_twice, float factor, char* to) {
    const __m512i below_512 = _mm512_set1_epi32(below_512_twice);
    const __m512 scale = _mm512_set1_ps(factor);
    const bool streams = kPastCaches && is_line(to);
    int64_t k = 0;
    for (; k + 32 <= count; k += 32) store64(to + 2 * k, scaled_bf16(codes + k, below_512, scale), streams);
    return k;
  }
};

}  // namespace
}  // namespace qcts::avx512
