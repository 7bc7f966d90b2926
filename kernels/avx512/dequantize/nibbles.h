// SPDX-License-Identifier: BSD-3-Clause
// Decodes 4-bit codes to bfloat16, for the AVX-512 variants of dequantize.
// If sixteen floats are rounded in their upper halves, they are a table of 32 words.
// Three operations put 32 codes into place, and one permutation of words looks them up.
// Byte shuffles take four times as many operations (kernels/avx2/lut16.h).
#pragma once

#include "kernels/avx512/elements.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

// Returns (2 * code + 1) in 32 words.
// The permutation reads only five bits of a word, so the other code of the byte may stay above them.
// If kHighFirst is true, the even code is in the high nibble.
template <bool kHighFirst>
[[gnu::always_inline]] inline __m512i upper_words(const uint8_t* pairs) {
  const __m512i bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pairs)));
  const __m512i even = kHighFirst ? _mm512_srli_epi32(bytes, 3) : _mm512_slli_epi32(bytes, 1),
                odd = _mm512_slli_epi32(bytes, kHighFirst ? 17 : 13);
  return _mm512_ternarylogic_epi32(even, odd, _mm512_set1_epi32(0x00010001), 0xFE);  // a | b | c
}

// Looks up `count` codes, a multiple of 32, in one table.
template <bool kHighFirst>
[[gnu::always_inline]] inline void look_up_words(__m512 table, const uint8_t* pairs, int64_t count,
                                                 bool streams, char* to) {
  for (int64_t k = 0; k < count; k += 32)
    store64(to + 2 * k,
            _mm512_permutexvar_epi16(upper_words<kHighFirst>(pairs + k / 2), _mm512_castps_si512(table)),
            streams);
}

}  // namespace
}  // namespace qcts::avx512
