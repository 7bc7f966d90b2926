// SPDX-License-Identifier: BSD-3-Clause
// Converts rows of fp8_sparse24 to 16-bit dtypes, for the AVX-512 variant of dequantize.
// Only the values are looked up (kernels/avx512/dequantize/float8_table.h), 32 at a time.
// Then the words move to their places. 64 elements cost 27 operations.
#pragma once

#include "kernels/avx2/dequantize/sparse24_dequantize.h"
#include "kernels/avx512/dequantize/float8_table.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

// Masks that spread the nibbles of places to sixteen elements. A byte has two nibbles, and a word has four.
struct Places24 {
  __m512i first, second;        // the two bits that give the place of a value
  __m512i to_first, to_second;  // the same bits for the place of an element
};
[[gnu::always_inline]] inline Places24 places24() {
  const auto chunks = [](int64_t bits) { return _mm512_set4_epi64(bits << 12, bits << 8, bits << 4, bits); };
  return {chunks(0x0003000300030003), chunks(0x000C000C000C000C), chunks(0x0003000200010000),
          chunks(0x000C000800040000)};
}

// Returns elements [32 * kHalf, 32 * kHalf + 32) of 64.
// `values` holds their values, and `metadata` holds the places.
// As in dequantize/fp8_sparse24_scalar.cc, nibble 0 means that the chunk has no value.
// If both values have the same place, the second one counts.
template <int kHalf>
[[gnu::always_inline]] inline __m512i expanded_words(__m512i values, __m512i zeros, const Places24& places,
                                                     const uint8_t* metadata) {
  int32_t four;
  std::memcpy(&four, metadata + 4 * kHalf, 4);
  const int64_t lower = 0x0100010001000100, upper = 0x0302030203020302;
  const __m512i half = _mm512_shuffle_epi8(
      _mm512_set1_epi32(four), _mm512_setr_epi64(lower, lower, lower, lower, upper, upper, upper, upper));
  const __m512i from = _mm512_add_epi16(
      _mm512_setr_epi64(0, 0x0002000200020002, 0x0004000400040004, 0x0006000600060006, 0x0008000800080008,
                        0x000A000A000A000A, 0x000C000C000C000C, 0x000E000E000E000E),
      _mm512_set1_epi16(16 * kHalf));
  const __mmask32 any = _mm512_test_epi16_mask(half, _mm512_or_si512(places.first, places.second));
  const __mmask32 is_first =
      _mm512_mask_cmpeq_epi16_mask(any, _mm512_and_si512(half, places.first), places.to_first);
  const __mmask32 is_second =
      _mm512_mask_cmpeq_epi16_mask(any, _mm512_and_si512(half, places.second), places.to_second);
  const __m512i firsts = _mm512_mask_mov_epi16(zeros, is_first, _mm512_permutexvar_epi16(from, values));
  return _mm512_mask_mov_epi16(
      firsts, is_second, _mm512_permutexvar_epi16(_mm512_add_epi16(from, _mm512_set1_epi16(1)), values));
}

struct SparseTables {
  static void dequantize(uint32_t dtype, const uint8_t* values, const uint8_t* metadata, int64_t count,
                         float scale, bool past_caches, char* to) {
    if (dtype == QCTS_F32)
      return avx2::SparseRows::dequantize(dtype, values, metadata, count, scale, past_caches, to);
    const Float8Words words = float8_words<Float8::e4m3>(dtype, scale);
    const __m512i zeros = _mm512_broadcastw_epi16(_mm512_castsi512_si128(words.of[0]));
    const Places24 places = places24();
    const auto sixty_four = [&](const uint8_t* two, const uint8_t* where, bool streams, char* at) {
      const __m512i kept = look_up_float8(words, two);
      store64(at, expanded_words<0>(kept, zeros, places, where), streams);
      store64(at + 64, expanded_words<1>(kept, zeros, places, where), streams);
    };
    const bool streams = past_caches && is_line(to);
    int64_t k = 0;
    for (; k + 64 <= count; k += 64) sixty_four(values + k / 2, metadata + k / 8, streams, to + 2 * k);
    if (k == count) return;
    uint8_t two[32] = {}, where[8] = {};
    char rest[128];
    std::memcpy(two, values + k / 2, static_cast<size_t>((count - k) / 2));
    std::memcpy(where, metadata + k / 8, static_cast<size_t>((count - k) / 8));
    sixty_four(two, where, false, rest);
    std::memcpy(to + 2 * k, rest, static_cast<size_t>(2 * (count - k)));
  }
};

}  // namespace
}  // namespace qcts::avx512
