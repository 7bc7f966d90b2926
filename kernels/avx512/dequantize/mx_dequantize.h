// SPDX-License-Identifier: BSD-3-Clause
// Converts blocks of mx to bfloat16, for the AVX-512 variant of dequantize. A block of 32 is one vector.
// kernels/avx2/dequantize/mx_dequantize.h does the rest.
#pragma once

#include "kernels/avx2/dequantize/mx_dequantize.h"
#include "kernels/avx512/dequantize/nibbles.h"

namespace qcts::avx512 {
namespace {

struct MxWords {
  static void look_up_e2m1(__m256i products, const uint8_t* pairs, bool past_caches, char* to) {
    const __m512i table = _mm512_slli_epi32(_mm512_cvtepu16_epi32(products), 16);
    look_up_words<false>(_mm512_castsi512_ps(table), pairs, avx2::kMxBlockK, past_caches && is_line(to), to);
  }

  template <int kFractionBits>
  static void move_float8(const uint8_t* codes, int added, bool past_caches, char* to) {
    const __m256i from = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m512i moved = _mm512_slli_epi16(_mm512_cvtepi8_epi16(from), 7 - kFractionBits);
    const __m512i kept = _mm512_and_si512(moved, _mm512_set1_epi16(avx2::kMovedBits<kFractionBits>));
    store64(to, _mm512_add_epi16(kept, _mm512_set1_epi16(static_cast<int16_t>(added << 7))),
            past_caches && is_line(to));
  }
};

}  // namespace
}  // namespace qcts::avx512
