// code * scale + zero of an int4 group, rounded once to the weight's dtype, for the AVX2 variants of
// dequantize, and for nothing else: every function has internal linkage. Where the dtype is narrow the sum is
// made to odd (to the neighbour with an odd last bit when inexact), after which the final rounding to nearest
// is that of the exact sum: in float32 while product and zero are far from its end, in double otherwise.
#pragma once

#include "kernels/avx2_table.h"

namespace qcts::avx2 {
namespace {

// product + zero of four doubles, to odd.
[[maybe_unused]] __m256d add_to_odd(__m256d product, __m256d zero) {
  const __m256d sum = _mm256_add_pd(product, zero);
  const __m256d rest = _mm256_sub_pd(sum, product);
  const __m256d error =
      _mm256_add_pd(_mm256_sub_pd(product, _mm256_sub_pd(sum, rest)), _mm256_sub_pd(zero, rest));
  const __m256i bits = _mm256_castpd_si256(sum), one = _mm256_set1_epi64x(1);
  const __m256i inexact = _mm256_castpd_si256(_mm256_cmp_pd(error, _mm256_setzero_pd(), _CMP_NEQ_OQ));
  const __m256i even = _mm256_cmpeq_epi64(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  // Away from zero when the error has the sum's sign: step 1, otherwise -1.
  const __m256i opposite = _mm256_srli_epi64(_mm256_xor_si256(_mm256_castpd_si256(error), bits), 63);
  const __m256i step = _mm256_sub_epi64(one, _mm256_slli_epi64(opposite, 1));
  return _mm256_castsi256_pd(_mm256_add_epi64(bits, _mm256_and_si256(step, _mm256_and_si256(inexact, even))));
}

// Four doubles to floats, to odd. Below the smallest float that is the smallest float, above the largest the
// largest.
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

// product + zero of eight floats, to odd; both exact, and far from overflow.
[[maybe_unused]] __m256 add_to_odd(__m256 product, __m256 zero) {
  const __m256 sum = _mm256_add_ps(product, zero);
  const __m256 rest = _mm256_sub_ps(sum, product);
  const __m256 error =
      _mm256_add_ps(_mm256_sub_ps(product, _mm256_sub_ps(sum, rest)), _mm256_sub_ps(zero, rest));
  const __m256i bits = _mm256_castps_si256(sum), one = _mm256_set1_epi32(1);
  const __m256i inexact = _mm256_castps_si256(_mm256_cmp_ps(error, _mm256_setzero_ps(), _CMP_NEQ_OQ));
  const __m256i even = _mm256_cmpeq_epi32(_mm256_and_si256(bits, one), _mm256_setzero_si256());
  // Away from zero when the error has the sum's sign: step 1, otherwise -1.
  const __m256i opposite = _mm256_srli_epi32(_mm256_xor_si256(_mm256_castps_si256(error), bits), 31);
  const __m256i step = _mm256_sub_epi32(one, _mm256_slli_epi32(opposite, 1));
  return _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_and_si256(step, _mm256_and_si256(inexact, even))));
}

// Codes c = first, first + 1, ... first + 15 (mod 16 from -8): values of (c - 8) for kOffset, of the signed
// nibble otherwise.
template <bool kOffset>
void fill_int4(uint32_t dtype, float scale, float zero, Table* table) {
  alignas(32) static constexpr float kFirst[8] = {-8, -7, -6, -5, -4, -3, -2, -1},
                                     kSecond[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const float* codes[2] = {kOffset ? kFirst : kSecond, kOffset ? kSecond : kFirst};
  const bool near = __builtin_fabsf(scale) < 0x1p120f && __builtin_fabsf(zero) < 0x1p120f;
  for (int half = 0; half < 2; ++half) {
    const __m256 code = _mm256_loadu_ps(codes[half]), s = _mm256_set1_ps(scale), z = _mm256_set1_ps(zero);
    float* wide = table->wide + 8 * half;
    if (dtype == QCTS_F32) {
      _mm256_storeu_ps(wide, _mm256_fmadd_ps(code, s, z));
    } else if (near) {
      _mm256_storeu_ps(wide, add_to_odd(_mm256_mul_ps(code, s), z));
    } else {
      for (int i = 0; i < 8; i += 4) {
        const __m256d product =
            _mm256_mul_pd(_mm256_cvtps_pd(_mm_loadu_ps(codes[half] + i)), _mm256_set1_pd(scale));
        _mm_storeu_ps(wide + i, narrow_to_odd(add_to_odd(product, _mm256_set1_pd(zero))));
      }
    }
  }
  narrow_table(dtype, table);
}

}  // namespace
}  // namespace qcts::avx2
