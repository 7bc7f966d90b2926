// SPDX-License-Identifier: BSD-3-Clause
// Helpers that the AVX2 kernels of quantize and quantize_activation share.
#pragma once

#include "kernels/avx2/elements.h"
#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

// Returns the largest magnitude of `count` elements, as bits of dtype.
// Without its sign, a float has the same order as the integer of its bits, with NaN above all numbers.
// So 16 narrow elements cost a mask and a maximum.
[[maybe_unused]] uint32_t largest_magnitude_bits(uint32_t dtype, const char* row, int64_t count) {
  if (dtype == QCTS_F32) {
    const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
    __m256i max = _mm256_setzero_si256();
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
      max = _mm256_max_epu32(
          max, _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 4 * i)), mask));
    uint32_t lanes[kLanes], largest = 0;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), max);
    for (uint32_t lane : lanes) largest = lane > largest ? lane : largest;
    for (; i < count; ++i) {
      uint32_t bits;
      std::memcpy(&bits, row + 4 * i, 4);
      bits &= 0x7FFFFFFF;
      largest = bits > largest ? bits : largest;
    }
    return largest;
  }
  const __m256i mask = _mm256_set1_epi16(0x7FFF);
  __m256i max = _mm256_setzero_si256();
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    max = _mm256_max_epu16(
        max, _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 2 * i)), mask));
  uint16_t lanes[16];
  uint32_t largest = 0;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), max);
  for (uint16_t lane : lanes) largest = lane > largest ? lane : largest;
  for (; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, row + 2 * i, 2);
    const uint32_t magnitude = bits & 0x7FFFu;
    largest = magnitude > largest ? magnitude : largest;
  }
  return largest;
}

[[maybe_unused]] float float_of_bits(uint32_t dtype, uint32_t bits) {
  return _mm256_cvtss_f32(load_some(dtype, &bits, 1));
}

// Rounds a float to dtype and converts it back.
[[maybe_unused]] float round_once(uint32_t dtype, float value) {
  char element[4];
  store_some(dtype, element, _mm256_set1_ps(value), 1);
  return _mm256_cvtss_f32(load_some(dtype, element, 1));
}

// Narrows 32 int32 values to bytes, saturated and in order.
[[maybe_unused]] __m256i narrow_to_bytes(__m256i a, __m256i b, __m256i c, __m256i d) {
  const __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

template <uint32_t kDtype>
[[gnu::always_inline]] inline __m256i unsigned_max(__m256i a, __m256i b) {
  return kDtype == QCTS_F32 ? _mm256_max_epu32(a, b) : _mm256_max_epu16(a, b);
}

// Returns the largest magnitudes of kBytes bytes, as bits of dtype, spread over the lanes of a vector.
template <uint32_t kDtype, int64_t kBytes>
[[gnu::always_inline]] inline __m256i largest_bits(const char* from) {
  const __m256i mask = kDtype == QCTS_F32 ? _mm256_set1_epi32(INT32_MAX) : _mm256_set1_epi16(INT16_MAX);
  const auto magnitudes = [&](int64_t at) {
    return _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + at)), mask);
  };
  __m256i max = magnitudes(0);
  for (int64_t at = 32; at < kBytes; at += 32) max = unsigned_max<kDtype>(max, magnitudes(at));
  return max;
}

// Reduces each of eight vectors to one lane with `max`. Returns the lanes as floats.
template <uint32_t kDtype, class Max>
[[gnu::always_inline]] inline __m256 reduce_eight(const __m256i* of, const Max& max) {
  __m256i four[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    four[i] = max(_mm256_permute2x128_si256(of[i], of[i + 4], 0x20),
                  _mm256_permute2x128_si256(of[i], of[i + 4], 0x31));
  const auto dwords = [&](__m256i a, __m256i b) {
    return max(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
  };
  const auto words = [&](__m256i a, __m256i b) {
    return max(_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
  };
  if (kDtype == QCTS_F32) {
    const __m256i low = dwords(four[0], four[1]), high = dwords(four[2], four[3]);
    return _mm256_castsi256_ps(max(_mm256_unpacklo_epi64(low, high), _mm256_unpackhi_epi64(low, high)));
  }
  const __m256i all = dwords(words(four[0], four[1]), words(four[2], four[3]));
  const __m256i once = _mm256_permute4x64_epi64(max(all, _mm256_srli_si256(all, 8)), 0x08);
  const __m128i bits = _mm256_castsi256_si128(once);
  return kDtype == QCTS_F16 ? _mm256_cvtph_ps(bits) : widen_bf16(bits);
}

// Returns the largest magnitudes of eight consecutive blocks of kBytes bytes.
template <uint32_t kDtype, int64_t kBytes>
[[gnu::always_inline]] inline __m256 largest_of_eight(const char* from) {
  __m256i tops[kLanes];
#pragma GCC unroll 8
  for (int64_t g = 0; g < kLanes; ++g) tops[g] = largest_bits<kDtype, kBytes>(from + g * kBytes);
  return reduce_eight<kDtype>(tops, unsigned_max<kDtype>);
}

// Prefetches the same bytes of the next row, and of the row after it into L2.
// If only the next row is prefetched, memory is idle while ranges are computed.
// 4096 x 4096 on one thread then takes 1.06 times as long (AVX-512).
template <int64_t kBytes>
[[gnu::always_inline]] inline void fetch_rows(const char* at, int64_t row_bytes) {
#pragma GCC unroll 4
  for (int64_t byte = 0; byte < kBytes; byte += 64) {
    _mm_prefetch(at + row_bytes + byte, _MM_HINT_T0);
    _mm_prefetch(at + 2 * row_bytes + byte, _MM_HINT_T1);
  }
}

// Stores eight int32 values in 0 .. 255 as bytes.
[[gnu::always_inline]] inline void store_bytes(uint8_t* to, __m256i eight) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_packus_epi16(words, words));
}

}  // namespace
}  // namespace qcts::avx2
