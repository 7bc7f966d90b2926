// SPDX-License-Identifier: BSD-3-Clause
// Finds the greatest words of several vectors side by side, for the AVX-512 variants of quantize.
// A single vector would take five dependent steps of two operations.
#pragma once

#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

// Reduces eight vectors by quarters, in 21 operations.
// Word i of a quarter is the greatest word in that quarter of vector i.
template <class Max>
[[gnu::always_inline]] inline __m512i max_of_quarters(const __m512i* of, const Max& max) {
  const auto words = [&](int i) {
    return max(_mm512_unpacklo_epi16(of[i], of[i + 1]), _mm512_unpackhi_epi16(of[i], of[i + 1]));
  };
  const auto dwords = [&](int i) {
    const __m512i a = words(i), b = words(i + 2);
    return max(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
  };
  const __m512i a = dwords(0), b = dwords(4);
  return max(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

// Reduces sixteen vectors. Returns the floats of dtype that have the resulting bits.
template <uint32_t kDtype, class Max>
[[gnu::always_inline]] inline __m512 max_of_sixteen(const __m512i* of, const Max& max) {
  const __m512i a = max_of_quarters(of, max), b = max_of_quarters(of + 8, max);
  const __m512i even = _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13),
                odd = _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15);
  const __m512i halves = max(_mm512_permutex2var_epi64(a, even, b), _mm512_permutex2var_epi64(a, odd, b));
  const __m512i whole = max(_mm512_permutexvar_epi64(even, halves), _mm512_permutexvar_epi64(odd, halves));
  alignas(32) char bits[32];
  _mm256_store_si256(reinterpret_cast<__m256i*>(bits), _mm512_castsi512_si256(whole));
  return load16(kDtype, bits);
}

struct UnsignedMax {
  [[gnu::always_inline]] __m512i operator()(__m512i a, __m512i b) const { return _mm512_max_epu16(a, b); }
};
[[maybe_unused]] [[gnu::always_inline]] inline __m512i magnitudes(const void* words) {
  return _mm512_and_si512(_mm512_loadu_si512(words), _mm512_set1_epi16(INT16_MAX));
}

}  // namespace
}  // namespace qcts::avx512
