// SPDX-License-Identifier: BSD-3-Clause
// Encodes bfloat16 with short scales, for the AVX-512 variants of quantize and quantize_activation of float8.
// kernels/avx2/quantize/float8_bands.h does the rest.
//
// An even element and the odd element after it are the halves of one lane.
// A mask turns each of them into a float,
// and one permutation of 16-bit words puts the rounded results in order.
// 64 elements take 31 operations. With vectors of half the width, they take 76.
#pragma once

#include "kernels/avx2/quantize/float8_bands.h"
#include "kernels/avx512/quantize.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

// If the exact quotient is not a tie, it is more than 2^8 float32 units away from a tie.
// (kernels/avx2/quantize/float8_bands.h explains it: the scale has 11 bits, and a tie has 2^19 units.)
// So the factor may reduce every product by 2^-18 of it, which is 2 to 64 units.
// Then adding one constant rounds ties down, and adding 128 more rounds them up.
// Neither constant changes the code of a product that is not a tie.
constexpr float kBelowTies = 1 - 0x1p-18f;

// Returns products of 16 magnitudes and the factor, plus half a code.
// The bits above kDropped are then the code.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m512i rounded_products(__m512i magnitudes, __m512 factor) {
  constexpr int kDropped = 23 - avx2::SmallBits<kFormat>::kFraction;
  const __m512i bits = _mm512_castps_si512(_mm512_mul_ps(_mm512_castsi512_ps(magnitudes), factor));
  const __m512i half =
      _mm512_ternarylogic_epi32(_mm512_set1_epi32(1 << (kDropped - 1)), _mm512_srli_epi32(bits, kDropped - 7),
                                _mm512_set1_epi32(128), 0xF8);  // a | (b & c): 128 for an odd code
  return _mm512_add_epi32(bits, half);
}

// Encodes 32 elements to 16 bits each, in order. An overflow gives more than the largest code.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m512i bf16_words(__m512i both, __m512 factor) {
  const __m512i magnitude = _mm512_set1_epi32(0x7FFF0000);
  const __m512i even = rounded_products<kFormat>(_mm512_and_si512(_mm512_slli_epi32(both, 16), magnitude),
                                                 factor),
                odd = rounded_products<kFormat>(_mm512_and_si512(both, magnitude), factor);
  const __m512i upper_halves =
      _mm512_setr_epi32(1 | 33 << 16, 3 | 35 << 16, 5 | 37 << 16, 7 | 39 << 16, 9 | 41 << 16, 11 | 43 << 16,
                        13 | 45 << 16, 15 | 47 << 16, 17 | 49 << 16, 19 | 51 << 16, 21 | 53 << 16,
                        23 | 55 << 16, 25 | 57 << 16, 27 | 59 << 16, 29 | 61 << 16, 31 | 63 << 16);
  return _mm512_srli_epi16(_mm512_permutex2var_epi16(even, upper_halves, odd),
                           7 - avx2::SmallBits<kFormat>::kFraction);
}

template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m512i bf16_64_codes(const char* at, __m512 factor_a, __m512 factor_b) {
  const auto max = static_cast<char>(kFormat == SmallFloat::e4m3 ? 0x7E : 0x7B);
  const __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64);
  const __m512i bytes =
      _mm512_min_epu8(_mm512_packus_epi16(bf16_words<kFormat>(a, factor_a), bf16_words<kFormat>(b, factor_b)),
                      _mm512_set1_epi8(max));
  const __m512i codes =
      _mm512_ternarylogic_epi32(bytes, _mm512_packs_epi16(a, b), _mm512_set1_epi8(static_cast<char>(0x80)),
                                0xF8);  // a | (b & c): the packs saturate to the sign
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), codes);
}

struct WideFloat8Parts : avx2::Float8Parts {
  static uint32_t largest_bits(uint32_t dtype, const char* from, int64_t count) {
    return largest_magnitude_bits(dtype, from, count);
  }

  template <SmallFloat kFormat>
  static void short_codes(const char* from, int64_t next_bytes, int64_t count, float plain_scale,
                          bool past_caches, uint8_t* codes) {
    const __m512 factor = _mm512_set1_ps(avx2::kShortUnit<kFormat> * kBelowTies / plain_scale);
    const bool streams = past_caches && is_line(codes);
    int64_t k = 0;
    for (; k + 64 <= count; k += 64) {
      avx2::fetch_rows<128>(from + 2 * k, next_bytes);
      store64(codes + k, bf16_64_codes<kFormat>(from + 2 * k, factor, factor), streams);
    }
    if (k < count)
      avx2::Float8Parts::short_codes<kFormat>(from + 2 * k, next_bytes, count - k, plain_scale, false,
                                              codes + k);
  }
};

}  // namespace
}  // namespace qcts::avx512
