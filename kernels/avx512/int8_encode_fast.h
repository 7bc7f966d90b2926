// SPDX-License-Identifier: BSD-3-Clause
// Encodes bfloat16 as int8 with an ordinary scale, for the AVX-512 variants.
// The method is that of kernels/avx2/int8_encode_fast.h, with 64 elements at a time.
#pragma once

#include "kernels/avx2/int8_encode_fast.h"
#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

template <uint32_t kCommon>
struct OrdinaryScale {
  __m512 less, by;  // the reciprocal times 2^s - 1, and times 2^s
  __m512i zero_point;

  [[gnu::always_inline]] __m512i steps(__m512i upper) const {
    const __m512 w = _mm512_castsi512_ps(upper);
    if (kCommon == QCTS_F32) return _mm512_cvtps_epi32(_mm512_mul_ps(w, by));
    return _mm512_cvtps_epi32(_mm512_fmsub_ps(w, by, _mm512_mul_ps(w, less)));
  }
  // Returns the codes of 32 elements as words that are not clamped yet.
  [[gnu::always_inline]] __m512i codes(const char* at) const {
    const __m512i zero = _mm512_setzero_si512(), w = _mm512_loadu_si512(at);
    return _mm512_add_epi16(
        _mm512_packs_epi32(steps(_mm512_unpacklo_epi16(zero, w)), steps(_mm512_unpackhi_epi16(zero, w))),
        zero_point);
  }
};

struct CodeRange {
  __m512i min, max;

  // Clamps two vectors of 32 words and narrows them to bytes.
  [[gnu::always_inline]] __m512i bytes(__m512i a, __m512i b) const {
    const __m512i clamped = _mm512_min_epi8(_mm512_max_epi8(_mm512_packs_epi16(a, b), min), max);
    return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), clamped);
  }
};

}  // namespace
}  // namespace qcts::avx512
