// SPDX-License-Identifier: BSD-3-Clause
// Converts blocks of NVFP4 to bfloat16, for the AVX-512 variant of dequantize.
// The eight magnitudes of two blocks fill one vector.
// So their table costs 4 operations, and looking up the 32 codes of both blocks costs 9.
// kernels/avx2/dequantize/nvfp4_dequantize.h does the rest.
#pragma once

#include "kernels/avx2/dequantize/nvfp4_dequantize.h"
#include "kernels/avx512/dequantize/nibbles.h"

namespace qcts::avx512 {
namespace {

struct Nvfp4Words {
  static void dequantize_eight(__m256 scale, const uint8_t* pairs, bool past_caches, char* to) {
    alignas(32) float scales[avx2::kLanes];
    _mm256_store_ps(scales, scale);
    const bool streams = past_caches && is_line(to);
    const __m512 ones =
        // codes 0 .. 7 of both blocks
        _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    const __m512i second = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(16), 1);
    for (int64_t i = 0; i < avx2::kLanes; i += 2) {
      const __m512 factor =
          _mm512_mask_broadcastss_ps(_mm512_set1_ps(scales[i]), 0xFF00, _mm_load_ss(scales + i + 1));
      const __m512i table = _mm512_castps_si512(bf16_rounded(_mm512_mul_ps(ones, factor)));
      const __m512i words = upper_words<false>(pairs + 8 * i);  // bit 4 is the sign of a code
      const __m512i places =
          _mm512_ternarylogic_epi32(words, _mm512_set1_epi16(15), second, 0xEA);  // a & b | c
      store64(to + 32 * i,
              _mm512_ternarylogic_epi32(_mm512_permutexvar_epi16(places, table), _mm512_slli_epi16(words, 11),
                                        _mm512_set1_epi16(INT16_MIN), 0xF8),  // a | (b & c)
              streams);
    }
  }
};

}  // namespace
}  // namespace qcts::avx512
