// SPDX-License-Identifier: BSD-3-Clause
// For the AVX2 variants of fp8_sparse24.
// Compresses chunks of four codes to two codes and expands them again, 32 at a time.
// Byte shuffles treat each chunk according to 4 bits, which select from tables.
#pragma once

#include "kernels/avx2/elements.h"
#include "kernels/families/sparse24.h"

namespace qcts::avx2 {
namespace {

// Expands 16 values and 4 bytes of places to 32 codes.
// As in dequantize/fp8_sparse24_scalar.cc, nibble 0 means that the chunk has no value.
// If both values have the same place, the second one counts.
[[gnu::always_inline]] inline __m256i expand24(const uint8_t* values, const uint8_t* metadata) {
  int32_t four;
  std::memcpy(&four, metadata, 4);
  const __m128i eights = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
  // Values 0 .. 7 are in the lower half and 8 .. 15 in the upper half.
  // The first value of each chunk is repeated four times, and so is the second.
  const __m256i pairs = _mm256_permute4x64_epi64(_mm256_castsi128_si256(eights), 0x50);
  const __m256i first = _mm256_shuffle_epi8(
      pairs, _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6)));
  const __m256i second = _mm256_shuffle_epi8(
      pairs, _mm256_broadcastsi128_si256(_mm_setr_epi8(1, 1, 1, 1, 3, 3, 3, 3, 5, 5, 5, 5, 7, 7, 7, 7)));
  // Each byte of places is repeated eight times; the even chunk reads its low nibble.
  const __m256i places = _mm256_shuffle_epi8(
      _mm256_set1_epi32(four), _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2,
                                                2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3));
  const auto holds = [&](int64_t mask, int64_t want) {
    return _mm256_cmpeq_epi8(_mm256_and_si256(places, _mm256_set1_epi64x(mask)), _mm256_set1_epi64x(want));
  };
  const __m256i is_first = holds(0x3030303003030303, 0x3020100003020100),
                is_second =
                    holds(static_cast<int64_t>(0xC0C0C0C00C0C0C0C), static_cast<int64_t>(0xC08040000C080400)),
                is_empty = holds(static_cast<int64_t>(0xF0F0F0F00F0F0F0F), 0);
  const __m256i codes = _mm256_blendv_epi8(_mm256_and_si256(first, is_first), second, is_second);
  return _mm256_andnot_si256(is_empty, codes);
}

// Tables whose index says which codes of a chunk are not zero.
// The tables hold the positions from which the two values come (0x80 for a zero),
// and the places of the values.
struct Tables24 {
  alignas(16) uint8_t first[16], second[16], places[16];
};
constexpr Tables24 tables24() {
  Tables24 tables = {};
  for (int mask = 0; mask < 16; ++mask) {
    const int first = kPlaces24[mask] & 3, second = kPlaces24[mask] >> 2 & 3;
    tables.first[mask] = static_cast<uint8_t>((mask >> first & 1) != 0 ? first : 0x80);
    tables.second[mask] = static_cast<uint8_t>((mask >> second & 1) != 0 ? second : 0x80);
    tables.places[mask] = kPlaces24[mask];
  }
  return tables;
}
constexpr Tables24 kTables24 = tables24();

// Compresses 32 codes to 16 values and 4 bytes of places.
// A returned byte is kTooMany if its chunk has too many nonzero codes.
[[gnu::always_inline]] inline __m256i compress24(__m256i codes, uint8_t* values, uint8_t* metadata) {
  const auto look_up = [](const uint8_t* table, __m256i index) {
    const __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), index);
  };
  const __m256i zero =
      _mm256_cmpeq_epi8(_mm256_and_si256(codes, _mm256_set1_epi8(0x7F)), _mm256_setzero_si256());
  // The lowest byte of each chunk says which of its codes are not zero.
  const __m256i bits = _mm256_andnot_si256(zero, _mm256_set1_epi32(0x08040201));
  const __m256i chunks =
      _mm256_madd_epi16(_mm256_maddubs_epi16(bits, _mm256_set1_epi8(1)), _mm256_set1_epi16(1));
  const __m256i twice = _mm256_shuffle_epi8(
      chunks,
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 0, 4, 4, 8, 8, 12, 12, -1, -1, -1, -1, -1, -1, -1, -1)));
  const __m256i from = _mm256_blendv_epi8(look_up(kTables24.first, twice), look_up(kTables24.second, twice),
                                          _mm256_set1_epi16(static_cast<int16_t>(0xFF00)));
  const __m256i two =
      _mm256_shuffle_epi8(codes, _mm256_add_epi8(from, _mm256_set1_epi64x(0x0C0C080804040000)));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(values),
                   _mm256_castsi256_si128(_mm256_permute4x64_epi64(two, 0x08)));
  const __m256i nibbles = look_up(kTables24.places, chunks);
  const __m256i pairs =
      _mm256_shuffle_epi8(_mm256_or_si256(nibbles, _mm256_srli_epi64(nibbles, 28)),
                          _mm256_setr_epi8(0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                           -1, -1, 0, 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
  const int32_t four =
      _mm_cvtsi128_si32(_mm_or_si128(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1)));
  std::memcpy(metadata, &four, 4);
  return nibbles;
}

}  // namespace
}  // namespace qcts::avx2
