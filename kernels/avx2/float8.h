// SPDX-License-Identifier: BSD-3-Clause
// Converts floats of eight and six bits to float32 with AVX2.
// The exponent and the fraction of a code are moved to their places in a float.
// The result is the value of the code times a power of two, also for subnormals.
// One exact multiplication removes that power of two.
#pragma once

#include "kernels/avx2/elements.h"

namespace qcts::avx2 {
namespace {

// Codes of six-bit formats are in the low bits of a byte, as they are stored.
enum class Float8 { e4m3, e5m2, e2m3, e3m2 };

template <Float8 kFormat>
struct Float8Bits {
  static constexpr bool kSixBits = kFormat == Float8::e2m3 || kFormat == Float8::e3m2;
  static constexpr int kFractionBits = kFormat == Float8::e4m3 || kFormat == Float8::e2m3 ? 3 : 2;
  static constexpr int kMagnitude = kSixBits ? 0x1F : 0x7F;  // the bits below the sign
  // 2^(127 - bias)
  static constexpr float kUnit = kFormat == Float8::e4m3   ? 0x1p120f
                                 : kFormat == Float8::e5m2 ? 0x1p112f
                                 : kFormat == Float8::e2m3 ? 0x1p126f
                                                           : 0x1p124f;
};

// Converts codes that are neither NaN nor infinite.
template <Float8 kFormat>
[[gnu::always_inline]] inline __m256 finite_small_float(const void* codes) {
  using Bits = Float8Bits<kFormat>;
  __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(codes)));
  constexpr int kShift = 23 - Bits::kFractionBits;
  constexpr uint32_t kKept = static_cast<uint32_t>(Bits::kMagnitude) << kShift | 0x80000000u;
  if (Bits::kSixBits) {
    const __m256i sign = _mm256_slli_epi32(wide, 26);  // moves bit 5 to bit 31
    const __m256i magnitude = _mm256_and_si256(_mm256_slli_epi32(wide, kShift),
                                               _mm256_set1_epi32(static_cast<int>(kKept & 0x7FFFFFFFu)));
    wide =
        _mm256_or_si256(magnitude, _mm256_and_si256(sign, _mm256_set1_epi32(static_cast<int>(0x80000000u))));
  } else {
    wide = _mm256_and_si256(_mm256_slli_epi32(wide, kShift), _mm256_set1_epi32(static_cast<int>(kKept)));
  }
  return _mm256_mul_ps(_mm256_castsi256_ps(wide), _mm256_set1_ps(Bits::kUnit));
}

// Converts any codes except an e4m3 NaN.
// An e5m2 code, also an infinity or NaN, is the upper half of a binary16 and is converted as a binary16.
// If its bits were moved instead, `linear` of MXFP8 at m = 1 would take three times as long (EPYC Zen 4).
template <Float8 kFormat>
[[gnu::always_inline]] inline __m256 float8_for_linear(const uint8_t* codes) {
  if constexpr (kFormat == Float8::e5m2) {
    const __m128i words = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes)));
    return _mm256_cvtph_ps(_mm_slli_epi16(words, 8));
  } else {
    return finite_small_float<kFormat>(codes);
  }
}

// Converts any codes. NaN and infinity get the exponent of a float NaN or infinity.
// In e4m3, only the two NaN codes do.
template <Float8 kFormat>
[[gnu::always_inline]] inline __m256 small_float(const void* codes) {
  const __m256 finite = finite_small_float<kFormat>(codes);
  if (Float8Bits<kFormat>::kSixBits) return finite;
  const __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(codes)));
  const __m256i magnitude = _mm256_and_si256(wide, _mm256_set1_epi32(0x7F));
  const __m256i last = _mm256_set1_epi32(kFormat == Float8::e4m3 ? 0x7E : 0x7B);
  const __m256i special =
      _mm256_and_si256(_mm256_cmpgt_epi32(magnitude, last), _mm256_set1_epi32(0x7F800000));
  return _mm256_or_ps(finite, _mm256_castsi256_ps(special));
}

}  // namespace
}  // namespace qcts::avx2
