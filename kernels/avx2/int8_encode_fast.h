// SPDX-License-Identifier: BSD-3-Clause
// Encodes 16-bit floats and float32 as int8 with an ordinary scale, for the AVX2 variants.
// A scale is ordinary if it is finite, at least 2^-100 and computed from the range of its elements.
// Products of the elements with the reciprocal then stay below 512, and nothing is NaN or infinite.
#pragma once

#include <math.h>

#include "kernels/avx2/quantize.h"

namespace qcts::avx2 {
namespace {

// 2^s of OrdinaryScale. float32 needs no rounding.
template <uint32_t kCommon>
constexpr float kFar = kCommon == QCTS_F32   ? 1
                       : kCommon == QCTS_F16 ? 0x1p13f
                                             : 0x1p16f;

[[maybe_unused]] bool is_ordinary(float scale) { return scale >= 0x1p-100f && scale < INFINITY; }

// Rounds a product p to b bits (8 for bfloat16, 11 for float16), then to an integer.
// Let 2^e <= p < 2^(e+1), s = 24 - b and u = 2^(e+1-b), the last place of the rounded p.
// The reciprocal has b bits, so its products with 2^s - 1 and 2^s are exact, and p has 2b bits.
// far = p * (2^s - 1) is rounded once.
// If far is at least 2^(e+s), it is rounded to a multiple of u,
// so p * 2^s - far is p rounded to a multiple of u.
// p * 2^s is an even multiple of u, so a tie is rounded to the even multiple.
// If far is below 2^(e+s), p is within u / 8 of 2^e and is rounded to 2^e.
// Values that underflow here, or are subnormal, become 0 as integers.
//
// The sum with the zero point is not rounded.
// Rounding would change only integers beyond 2^b, which are clamped in any case.
template <uint32_t kCommon>
struct OrdinaryScale {
  __m256 less, by;  // the reciprocal times 2^s - 1, and times 2^s
  __m256i zero_point, min, max;
  [[gnu::always_inline]] __m256i steps(__m256 w) const {
    if (kCommon == QCTS_F32) return _mm256_cvtps_epi32(_mm256_mul_ps(w, by));
    return _mm256_cvtps_epi32(_mm256_fmsub_ps(w, by, _mm256_mul_ps(w, less)));
  }
};

// Encodes 32 elements.
template <uint32_t kDtype, uint32_t kCommon>
[[gnu::always_inline]] inline __m256i int8_encode_fast(const OrdinaryScale<kCommon>& scale, const char* at) {
  const auto codes = [&](const __m256(&w)[4]) {
    const auto two = [&](int i) {
      return _mm256_add_epi16(_mm256_packs_epi32(scale.steps(w[i]), scale.steps(w[i + 1])), scale.zero_point);
    };
    return _mm256_min_epi8(_mm256_max_epi8(_mm256_packs_epi16(two(0), two(2)), scale.min), scale.max);
  };
  if (kDtype == QCTS_BF16) {  // unpacking widens and packing narrows; only the last pack changes the order
    const __m256i zero = _mm256_setzero_si256(), a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
                  b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
    const __m256 w[4] = {_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, a)),
                         _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, a)),
                         _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, b)),
                         _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, b))};
    return _mm256_permute4x64_epi64(codes(w), 0xD8);
  }
  constexpr int64_t kEightBytes = kDtype == QCTS_F32 ? 32 : 16;
  const __m256 w[4] = {load8(kDtype, at), load8(kDtype, at + kEightBytes),
                       load8(kDtype, at + 2 * kEightBytes), load8(kDtype, at + 3 * kEightBytes)};
  return _mm256_permutevar8x32_epi32(codes(w), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

}  // namespace
}  // namespace qcts::avx2
