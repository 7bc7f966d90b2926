// SPDX-License-Identifier: BSD-3-Clause
// Computes code * scale + zero for an int4 group,
// rounded once to the weight's dtype, for the AVX2 variants of dequantize.
// For a narrow dtype, the sum is first rounded to odd:
// an inexact sum becomes its neighbour with an odd last bit.
// Rounding that neighbour to nearest gives the same result as rounding the exact sum.
// The rounding happens in float32 if the product and the zero are far from its limits,
// and in double otherwise.
#pragma once

#include "kernels/avx2/lut16.h"

namespace qcts::avx2 {
namespace {

// Returns product + zero of four doubles, rounded to odd.
[[maybe_unused]] __m256d add_to_odd(__m256d product, __m256d zero) {
  const __m256d sum = _mm256_add_pd(product, zero);
  const __m256d rest = _mm256_sub_pd(sum, product);
  const __m256d error =
      _mm256_add_pd(_mm256_sub_pd(product, _mm256_sub_pd(sum, rest)), _mm256_sub_pd(zero, rest));
  const __m256i bits = _mm256_castpd_si256(sum), one = _mm256_set1_epi64x(1);
  const __m256i inexact = _mm256_castpd_si256(_mm256_cmp_pd(error, _mm256_setzero_pd(), _CMP_NEQ_OQ));
  const __m256i even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  // Steps away from zero if the error has the sign of the sum. The step is then 1, and otherwise -1.
  const __m256i opposite = _mm256_srli_epi64(_mm256_xor_si256(_mm256_castpd_si256(error), bits), 63);
  const __m256i step = _mm256_sub_epi64(one, _mm256_slli_epi64(opposite, 1));
  return _mm256_castsi256_pd(_mm256_add_epi64(bits, _mm256_and_si256(step, _mm256_and_si256(inexact, even))));
}

// Rounds four doubles to floats with an odd last bit.
// Magnitudes below the smallest float become the smallest,
// and magnitudes above the largest float become the largest.
[[maybe_unused]] __m128 narrow_to_odd(__m256d value) {
  const __m128 nearest = _mm256_cvtpd_ps(value);
  const __m256d back = _mm256_cvtps_pd(nearest);
  const __m256d sign = _mm256_set1_pd(-0.0);
  const __m256d up64 = _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, value), _CMP_LT_OQ);
  const __m256d down64 =
      _mm256_cmp_pd(_mm256_andnot_pd(sign, back), _mm256_andnot_pd(sign, value), _CMP_GT_OQ);
  const auto narrow_mask = [](__m256d mask) {
    const __m256i bits = _mm256_castpd_si256(mask);
    return _mm_castps_si128(_mm_shuffle_ps(_mm_castsi128_ps(_mm256_castsi256_si128(bits)),
                                           _mm_castsi128_ps(_mm256_extracti128_si256(bits, 1)),
                                           _MM_SHUFFLE(2, 0, 2, 0)));
  };
  const __m128i bits = _mm_castps_si128(nearest), one = _mm_set1_epi32(1);
  const __m128i even = _mm_cmpeq_epi32(_mm_and_si128(bits, one), _mm_setzero_si128());
  const __m128i up = _mm_and_si128(_mm_and_si128(narrow_mask(up64), even), one);
  const __m128i down = _mm_and_si128(_mm_and_si128(narrow_mask(down64), even), one);
  return _mm_castsi128_ps(_mm_sub_epi32(_mm_add_epi32(bits, up), down));
}

// Returns code * scale + zero for eight codes, rounded to odd. The numbers may have any magnitude.
[[maybe_unused]] [[gnu::noinline]] __m256 far_values(__m256 codes, float scale, float zero) {
  const auto half = [&](__m128 some) {
    const __m256d product = _mm256_mul_pd(_mm256_cvtps_pd(some), _mm256_set1_pd(scale));
    return narrow_to_odd(add_to_odd(product, _mm256_set1_pd(zero)));
  };
  return _mm256_set_m128(half(_mm256_extractf128_ps(codes, 1)), half(_mm256_castps256_ps128(codes)));
}

// Returns product + zero for eight floats, rounded to odd.
// Both inputs are exact and far from overflow. An inexact sum lies between two floats.
// The odd one is the rounded sum, or the next bits below it, with the last bit set.
[[gnu::always_inline]] inline __m256 add_to_odd(__m256 product, __m256 zero) {
  const __m256 sum = _mm256_add_ps(product, zero);
  const __m256 rest = _mm256_sub_ps(sum, product);
  const __m256 error =
      _mm256_add_ps(_mm256_sub_ps(product, _mm256_sub_ps(sum, rest)), _mm256_sub_ps(zero, rest));
  const __m256i bits = _mm256_castps_si256(sum);
  const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  // `nearer` is -1 where the exact sum is nearer to zero than the rounded sum.
  const __m256i nearer = _mm256_srai_epi32(_mm256_xor_si256(_mm256_castps_si256(error), bits), 31);
  const __m256i below = _mm256_add_epi32(bits, _mm256_and_si256(nearer, inexact));
  return _mm256_castsi256_ps(_mm256_or_si256(below, _mm256_srli_epi32(inexact, 31)));
}

// True if code * scale + zero in float32 is exact,
// or so far from a tie of the dtype that rounding twice is harmless.
// A number with exponent e is a multiple of 2^(e - 10) and below 2^(e + 1); codes are at most 8.
// The scale's exponent may be at most 9 above the zero's exponent and at most 12 below it.
// Then all sums are multiples of one 2^i and below 2^(i + 24).
// If the exponents are farther apart, the product may be a tie while float32 drops the zero.
[[gnu::always_inline]] inline bool is_plain_sum(float scale, float zero) {
  const auto exponent = [](float value) {
    return static_cast<int>(__builtin_bit_cast(uint32_t, value) >> 23 & 255);
  };
  const int apart = exponent(scale) - exponent(zero);
  return exponent(scale) < 240 && ((apart <= 9 && apart >= -12) || zero == 0);
}

template <uint32_t kDtype>
[[gnu::noinline]] Lut16 odd_int4_table(__m256 first, __m256 second, float scale, float zero) {
  const __m256 s = _mm256_set1_ps(scale), z = _mm256_set1_ps(zero);
  if (__builtin_fabsf(scale) < 0x1p120f && __builtin_fabsf(zero) < 0x1p120f)
    return lut16_of(kDtype, add_to_odd(_mm256_mul_ps(first, s), z), add_to_odd(_mm256_mul_ps(second, s), z));
  return lut16_of(kDtype, far_values(first, scale, zero), far_values(second, scale, zero));
}

// Returns the values of (c - 8) * scale + zero if kOffset is true.
// Otherwise c is a signed nibble, and the values are c * scale + zero.
template <bool kOffset, uint32_t kDtype>
[[gnu::always_inline]] inline Lut16 int4_table(float scale, float zero) {
  const __m256 below = _mm256_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1),
               above = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256 first = kOffset ? below : above, second = kOffset ? above : below;
  const __m256 s = _mm256_set1_ps(scale), z = _mm256_set1_ps(zero);
  if (kDtype != QCTS_F32 && !is_plain_sum(scale, zero))
    return odd_int4_table<kDtype>(first, second, scale, zero);
  if (kDtype != QCTS_BF16)
    return lut16_of(kDtype, _mm256_fmadd_ps(first, s, z), _mm256_fmadd_ps(second, s, z));
  return finite_bf16_lut16(_mm256_fmadd_ps(_mm256_permute2f128_ps(first, second, 0x20), s, z),
                           _mm256_fmadd_ps(_mm256_permute2f128_ps(first, second, 0x31), s, z));
}

}  // namespace
}  // namespace qcts::avx2
