// SPDX-License-Identifier: BSD-3-Clause
// Encodes e2m1 and e2m3, for the AVX2 variants of mx and nvfp4.
// Encoding 64 elements of bfloat16 as e2m1 costs 72 operations.
// No product is a subnormal float, because subnormal floats can be slow.
// Most e2m3 codes are subnormal, and kernels/avx2/quantize/blocks.h takes twice as long for e2m3.
//
// The e2m1 codes mean 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
// So the code of a magnitude v is min(2v, v + 2, v / 2 + 4),
// rounded to an integer with ties to even, as floats round.
// Rounding keeps order, so each of the three terms may be rounded before the minimum is taken.
// The last place of a float is 0.5 below 2^23 and 1 above it.
// So the sum v + 2^23 - 2 is rounded to halves if v < 2, and to integers otherwise.
// The bits of the sum count both: they are the bits of 2^23 less 4, plus the code.
// The third term is v / 2 + 2^23.
// For each e2m1 code there are four e2m3 codes, so 2^21 replaces 2^23, and 16 replaces 4.
#pragma once

#include "kernels/avx2/quantize/blocks.h"

namespace qcts::avx2 {
namespace {

template <SmallFloat kFormat>
constexpr bool kTwoExponentBits = kFormat == SmallFloat::e2m1 || kFormat == SmallFloat::e2m3;
template <SmallFloat kFormat>
struct TwoExponentBits {
  static constexpr int kFraction = SmallBits<kFormat>::kFraction;
  static constexpr int kAbove2 = 2 << kFraction;  // the code of 2
  static constexpr float kFar = 1 << (24 - kFraction);
  static constexpr int32_t kFarBits = (127 + 24 - kFraction) << 23;
};

// 16 codes minus kAbove2 in 16-bit lanes, in order.
// `magnitudes` holds the codes of the magnitudes; an overflow gives a code that is too large.
// `signs` holds words with the sign bits of the elements.
struct CodeWords {
  __m256i magnitudes, signs;
};

// Encodes 16 elements at `at`. Each product of an element and its factor is below 2^13.
template <SmallFloat kFormat, uint32_t kDtype>
[[gnu::always_inline]] inline CodeWords code_words(const char* at, __m256 factor) {
  using Bits = TwoExponentBits<kFormat>;
  const auto sum = [&](__m256 magnitude) {
    const __m256 v = _mm256_mul_ps(magnitude, factor);
    const __m256 low = _mm256_add_ps(v, _mm256_set1_ps(Bits::kFar - 2)),
                 high = _mm256_fmadd_ps(v, _mm256_set1_ps(0.5f), _mm256_set1_ps(Bits::kFar));
    return _mm256_min_epi32(_mm256_castps_si256(low), _mm256_castps_si256(high));
  };
  const auto* from = reinterpret_cast<const __m256i*>(at);
  const __m256i first = _mm256_loadu_si256(from);
  if (kDtype == QCTS_BF16) {  // encodes even and odd elements separately and joins their codes
    const __m256i even = _mm256_slli_epi32(_mm256_and_si256(first, _mm256_set1_epi16(0x7FFF)), 16),
                  odd = _mm256_and_si256(first, _mm256_set1_epi32(0x7FFF0000));
    return {_mm256_blend_epi16(sum(_mm256_castsi256_ps(even)),
                               _mm256_slli_epi32(sum(_mm256_castsi256_ps(odd)), 16), 0xAA),
            first};
  }
  const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
  const auto in_order = [&](__m256 a, __m256 b) {
    const __m256i offset = _mm256_set1_epi32(Bits::kFarBits);
    const __m256i low = _mm256_sub_epi32(sum(_mm256_and_ps(a, mask)), offset),
                  high = _mm256_sub_epi32(sum(_mm256_and_ps(b, mask)), offset);
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xD8);
  };
  if (kDtype == QCTS_F16)
    return {in_order(_mm256_cvtph_ps(_mm256_castsi256_si128(first)),
                     _mm256_cvtph_ps(_mm256_extracti128_si256(first, 1))),
            first};
  const __m256i second = _mm256_loadu_si256(from + 1);
  return {in_order(_mm256_castsi256_ps(first), _mm256_castsi256_ps(second)),
          _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xD8)};
}

// Returns the bytes of 32 codes in the order a0-7 b0-7 | a8-15 b8-15.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m256i code_bytes(const CodeWords& a, const CodeWords& b) {
  constexpr int kAbove2 = TwoExponentBits<kFormat>::kAbove2, kShift = SmallBits<kFormat>::kBelowSign;
  const __m256i kept =
      _mm256_min_epi8(_mm256_packs_epi16(a.magnitudes, b.magnitudes), _mm256_set1_epi8(kAbove2 - 1));
  const __m256i signs = _mm256_and_si256(_mm256_srli_epi16(_mm256_packs_epi16(a.signs, b.signs), kShift),
                                         _mm256_set1_epi8(static_cast<char>(0x80 >> kShift)));
  return _mm256_or_si256(_mm256_add_epi8(kept, _mm256_set1_epi8(kAbove2)), signs);
}

// Packs the codes of 64 elements, two per byte. The even code is in the low nibble.
[[gnu::always_inline]] inline __m256i e2m1_pairs(const CodeWords (&words)[4]) {
  const auto pairs = [](const CodeWords& a, const CodeWords& b) {
    return _mm256_maddubs_epi16(code_bytes<SmallFloat::e2m1>(a, b), _mm256_set1_epi16(0x1001));
  };
  return _mm256_permutevar8x32_epi32(
      _mm256_packus_epi16(pairs(words[0], words[1]), pairs(words[2], words[3])),
      _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

}  // namespace
}  // namespace qcts::avx2
