// SPDX-License-Identifier: BSD-3-Clause
// Encodes bfloat16, for the AVX-512 variant of quantize of int8_row.
// kernels/avx2/quantize/int8_quantize.h does the rest.
//
// An even element and the odd element after it are the halves of one lane.
// So are their codes, which have at most nine bits. Nothing is reordered before the last pack.
// 64 elements take 20 operations. With vectors of half the width, they take 40.
#pragma once

#include "kernels/avx2/quantize/int8_quantize.h"
#include "kernels/avx512/quantize.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

[[gnu::always_inline]] inline __m512i code_words(const char* at, __m512 reciprocal) {
  const __m512i both = _mm512_loadu_si512(at);
  const auto codes = [&](__m512i element) {
    return _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_castsi512_ps(element), reciprocal));
  };
  const __m512i even = codes(_mm512_slli_epi32(both, 16)),
                odd = codes(_mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
  return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xFFFF), even, _mm512_slli_epi32(odd, 16),
                                   0xCA);  // a ? b : c
}

struct WideInt8Codes : avx2::Int8Codes {
  static uint32_t largest_bits(uint32_t dtype, const char* row, int64_t count) {
    return largest_magnitude_bits(dtype, row, count);
  }
  static int64_t quantize(uint32_t dtype, const char* row, int64_t row_bytes, int64_t k_count,
                          float reciprocal, bool past_caches, int8_t* codes) {
    if (dtype != QCTS_BF16)
      return avx2::Int8Codes::quantize(dtype, row, row_bytes, k_count, reciprocal, past_caches, codes);
    const __m512 by = _mm512_set1_ps(reciprocal);
    const bool streams = past_caches && is_line(codes);
    int64_t k = 0;
    for (; k + 64 <= k_count; k += 64) {
      const char* at = row + 2 * k;
      avx2::fetch_rows<128>(at, row_bytes);
      const __m512i bytes = _mm512_packs_epi16(code_words(at, by), code_words(at + 64, by));
      store64(codes + k, _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes), streams);
    }
    return k;
  }
};

}  // namespace
}  // namespace qcts::avx512
