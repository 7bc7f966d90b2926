// SPDX-License-Identifier: BSD-3-Clause
// Looks up float8 codes times a scale in a 16-bit dtype, for the AVX-512 variants of dequantize.
// A scale has 128 products, apart from their signs.
// The products are computed and rounded once and kept in four vectors.
// Two permutations look up the seven low bits of a code, each in one half of the table.
// 32 codes cost 7 operations for any scale. With byte tables in vectors of half the width, they cost 22.
#pragma once

#include "kernels/avx2/float8.h"
#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

using avx2::Float8;

// The values of the codes 0 .. 127.
template <Float8 kFormat>
struct Float8Values {
  alignas(64) float of[128];
  constexpr Float8Values() : of() {
    using Bits = avx2::Float8Bits<kFormat>;
    constexpr uint32_t kLast = kFormat == Float8::e4m3 ? 0x7E : 0x7B, kInfinite = kLast + 1;
    for (uint32_t code = 0; code <= kLast; ++code)
      of[code] = __builtin_bit_cast(float, code << (23 - Bits::kFractionBits)) * Bits::kUnit;
    for (uint32_t code = kInfinite; code < 128; ++code)
      of[code] = kFormat == Float8::e5m2 && code == kInfinite ? __builtin_inff() : __builtin_nanf("");
  }
};
template <Float8 kFormat>
constexpr Float8Values<kFormat> kFloat8Values;

// The 16-bit values of the codes 0 .. 127, as bits, in ascending order.
struct Float8Words {
  __m512i of[4];
};

template <Float8 kFormat>
[[gnu::always_inline]] inline Float8Words float8_words(uint32_t dtype, float scale) {
  const __m512 factor = _mm512_set1_ps(scale);
  const auto sixteen = [&](int code) {
    const __m512 products = _mm512_mul_ps(_mm512_load_ps(kFloat8Values<kFormat>.of + code), factor);
    return dtype == QCTS_F16 ? _mm512_cvtps_ph(products, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
                             : to_bf16(products);
  };
  Float8Words words;
  for (int i = 0; i < 4; ++i)
    words.of[i] = _mm512_inserti64x4(_mm512_castsi256_si512(sixteen(32 * i)), sixteen(32 * i + 16), 1);
  return words;
}

[[gnu::always_inline]] inline __m512i look_up_float8(const Float8Words& words, const void* codes) {
  const __m512i wide = _mm512_cvtepi8_epi16(_mm256_loadu_si256(static_cast<const __m256i*>(codes)));
  const __m512i lower = _mm512_permutex2var_epi16(words.of[0], wide, words.of[1]),
                upper = _mm512_permutex2var_epi16(words.of[2], wide, words.of[3]);
  const __m512i magnitudes =
      _mm512_mask_blend_epi16(_mm512_test_epi16_mask(wide, _mm512_set1_epi16(64)), lower, upper);
  return _mm512_ternarylogic_epi32(magnitudes, wide, _mm512_set1_epi16(INT16_MIN), 0x78);  // a ^ (b & c)
}

}  // namespace
}  // namespace qcts::avx512
