// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of fp8_sparse24, for the AVX-512 variant.
// kernels/avx2/quantize/sparse24_quantize.h does the work, with the codes of float8_quantize.h.
// 64 codes at a time are gathered in 18 operations.
#pragma once

#include "kernels/avx2/quantize/sparse24_quantize.h"
#include "kernels/avx512/quantize/float8_quantize.h"

namespace qcts::avx512 {
namespace {

// Does the same as avx2::compress24 for 64 codes.
struct WideCompress24 {
  static constexpr int64_t kCodes = 64;
  using Faults = __m512i;
  static Faults none() { return _mm512_setzero_si512(); }
  static Faults either(Faults a, Faults b) { return _mm512_or_si512(a, b); }
  static bool any(Faults faults) { return _mm512_test_epi32_mask(faults, _mm512_set1_epi8(INT8_MIN)) != 0; }

  static __m512i table(const uint8_t* of) {
    return _mm512_broadcast_i32x4(_mm_load_si128(reinterpret_cast<const __m128i*>(of)));
  }
  static Faults compress(const uint8_t* from, uint8_t* values, uint8_t* metadata) {
    const __m512i codes = _mm512_loadu_si512(from);
    const __mmask64 is_there = _mm512_test_epi8_mask(codes, _mm512_set1_epi8(0x7F));
    // The lowest byte of each chunk says which of its codes are not zero.
    const __m512i bits = _mm512_maskz_mov_epi8(is_there, _mm512_set1_epi32(0x08040201));
    const __m512i chunks =
        _mm512_madd_epi16(_mm512_maddubs_epi16(bits, _mm512_set1_epi8(1)), _mm512_set1_epi16(1));
    const __m512i twice = _mm512_shuffle_epi8(chunks, _mm512_set4_epi32(-1, -1, 0x0C0C0808, 0x04040000));
    const __m512i first = _mm512_shuffle_epi8(table(avx2::kTables24.first), twice);
    const __m512i places =
        _mm512_mask_shuffle_epi8(first, 0xAAAAAAAAAAAAAAAA, table(avx2::kTables24.second), twice);
    const __m512i two =
        _mm512_shuffle_epi8(codes, _mm512_add_epi8(places, _mm512_set1_epi64(0x0C0C080804040000)));
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(values),
        _mm512_castsi512_si256(_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 0, 2, 4, 6), two)));
    const __m512i nibbles = _mm512_shuffle_epi8(table(avx2::kTables24.places), chunks);
    const __m128i pairs = _mm_maddubs_epi16(_mm512_cvtepi32_epi8(nibbles), _mm_set1_epi16(0x1001));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(metadata), _mm_packus_epi16(pairs, pairs));
    return nibbles;
  }
};

}  // namespace
}  // namespace qcts::avx512
