// SPDX-License-Identifier: BSD-3-Clause
// Encodes bfloat16 as e4m3, e5m2 and e2m1,
// for the AVX-512 variants of quantize and quantize_activation of mx.
// kernels/avx2/quantize/mx.h does the rest.
#pragma once

#include "kernels/avx2/quantize/mx.h"
#include "kernels/avx512/quantize.h"
#include "kernels/avx512/quantize/float8_quantize.h"
#include "kernels/avx512/reduce.h"

namespace qcts::avx512 {
namespace {

// Returns the e2m1 codes of 32 elements, without sign, for a scale that is a power of two.
// The 6 operations are all on integers. An element is counted in steps above 3/16 of the scale.
// The 7 bits of its fraction and its exponent give 128 steps per binade. Ties are multiples of 32 steps.
// If steps / 32 is 2, 11, 15 or 19 (0.25, 1.25, 2.5 and 5), a tie goes to the lower code.
// If it is 8, 13 or 17 (0.75, 1.75 and 3.5), a tie goes to the upper code.
// Only the numbers 2, 11, 15 and 19 have bit 1 set. So one step is subtracted wherever that bit is set.
// A table lookup between multiples of 32 then gives the code.
// Elements below 3/16 count as 0 steps, and no element exceeds 8 times the scale, 704 steps.
[[gnu::always_inline]] inline __m512i e2m1_words(__m512i elements, __m512i below) {
  const __m512i codes =
      _mm512_setr_epi32(0, 1 | 1 << 16, 1 | 1 << 16, 1 | 1 << 16, 2 | 2 << 16, 2 | 3 << 16, 3 | 4 << 16,
                        4 | 5 << 16, 5 | 6 << 16, 6 | 7 << 16, 7 | 7 << 16, 7 | 7 << 16, 0, 0, 0, 0);
  const __m512i steps = _mm512_subs_epu16(_mm512_and_si512(elements, _mm512_set1_epi16(INT16_MAX)), below);
  const __mmask32 has_bit = _mm512_test_epi16_mask(steps, _mm512_set1_epi16(64));
  const __m512i less = _mm512_mask_sub_epi16(steps, has_bit, steps, _mm512_set1_epi16(1));
  return _mm512_permutexvar_epi16(_mm512_srli_epi16(less, 5), codes);
}

// Computes the bfloat16 bits of 3/16 of the scale from 1 / scale.
// These bits are subtracted from the bits of elements.
// Only the upper half of the factor matters, because its fraction is 0.
[[gnu::always_inline]] inline __m512i below_steps(const float* factor) {
  int16_t upper;
  std::memcpy(&upper, reinterpret_cast<const char*>(factor) + 2, 2);
  return _mm512_sub_epi16(_mm512_set1_epi16((254 - 2) * 128 - 64), _mm512_set1_epi16(upper));
}

// Returns the 64 codes of two blocks, one byte each.
// The packs leave eight codes of a and eight codes of b in turn.
[[gnu::always_inline]] inline __m512i e2m1_bytes(const char* at, const float* factors) {
  const __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64);
  const __m512i magnitudes = _mm512_packus_epi16(e2m1_words(a, below_steps(factors)),
                                                 e2m1_words(b, below_steps(factors + 1))),
                // the packs saturate, which keeps the sign
      signs = _mm512_srli_epi16(_mm512_packs_epi16(a, b), 4);
  return _mm512_ternarylogic_epi32(magnitudes, signs, _mm512_set1_epi8(8), 0xF8);  // a | (b & c)
}

struct WideMxCodes {
  template <uint32_t kDtype>
  [[gnu::always_inline]] static void largest(const char* from, int64_t count, float* largest) {
    constexpr int64_t kBlockBytes = avx2::kMxBlock * 2;
    int64_t first = 0;
    if constexpr (kDtype != QCTS_F32) {
      for (; first + kLanes <= count; first += kLanes) {
        __m512i of[kLanes];
#pragma GCC unroll 16
        for (int64_t g = 0; g < kLanes; ++g) of[g] = magnitudes(from + (first + g) * kBlockBytes);
        _mm512_store_ps(largest + first, max_of_sixteen<kDtype>(of, UnsignedMax()));
      }
    }
    avx2::mx_largest<kDtype>(from, first, count, largest);
  }

  template <SmallFloat kFormat, uint32_t kDtype>
  [[gnu::always_inline]] static void codes(const char* from, int64_t next_bytes, int64_t count,
                                           const float* factors, bool past_caches, uint8_t* to) {
    constexpr int64_t kBlockBytes = avx2::kMxBlock * 2;
    const bool streams = past_caches && is_line(to);
    if constexpr (kDtype == QCTS_BF16 && kFormat == SmallFloat::e2m1) {
      const auto pairs = [](__m512i codes) { return _mm512_maddubs_epi16(codes, _mm512_set1_epi16(0x1001)); };
      for (int64_t g = 0; g < count; g += 4) {
        const char* at = from + g * kBlockBytes;
        avx2::fetch_rows<4 * kBlockBytes>(at, next_bytes);
        const __m512i bytes = _mm512_packus_epi16(pairs(e2m1_bytes(at, factors + g)),
                                                  pairs(e2m1_bytes(at + 2 * kBlockBytes, factors + g + 2)));
        store64(to + g * avx2::kMxBlock / 2, in_order_of_packs(bytes), streams);
      }
    } else if constexpr (kDtype == QCTS_BF16 &&
                         (kFormat == SmallFloat::e4m3 || kFormat == SmallFloat::e5m2)) {
      for (int64_t g = 0; g < count; g += 2) {
        const char* at = from + g * kBlockBytes;
        avx2::fetch_rows<2 * kBlockBytes>(at, next_bytes);
        store64(to + g * avx2::kMxBlock,
                bf16_64_codes<kFormat>(at, _mm512_set1_ps(factors[g] * kBelowTies),
                                       _mm512_set1_ps(factors[g + 1] * kBelowTies)),
                streams);
      }
    } else {
      avx2::mx_codes<kFormat, kDtype>(from, next_bytes, count, factors, past_caches, to);
    }
  }
};

}  // namespace
}  // namespace qcts::avx512
