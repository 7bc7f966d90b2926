// SPDX-License-Identifier: BSD-3-Clause
// Decodes 4-bit codes for `linear` with AVX2.
//
// A code is looked up. Two byte shuffles give the low and the high byte of its value in bfloat16.
// An interleave joins them, and a shift or a mask makes the float.
// 64 codes take 3 operations to separate the nibbles, 4 shuffles, 4 interleaves
// and 8 shifts or masks: 19 in all. Sign extension by two shifts and a conversion takes 24.
// Any table of 16 bfloat16 values costs the same: integers, e2m1 or normal float.
//
// A block of 64 columns has 64 bytes for every two values of k; the even k is in the low nibbles.
// In each 32 columns, column 8 q + 4 h + d is in byte 16 h + 8 (q / 2) + 2 d + q % 2.
// The interleave within 128 bits expects column 8 q + 4 h + d there.
#pragma once

#include "kernels/avx2/linear.h"
#include "kernels/families/block_planes.h"

namespace qcts::avx2 {
namespace {

constexpr int kNibbleStep = 2, kNibbleWide = 4, kNibbleBytesPerK = kColumns / 2;
static_assert(kColumns == kPlaneColumns);

[[maybe_unused]] int64_t nibble_byte(int64_t column) {
  const int64_t q = column % 32 / 8, h = column % 8 / 4, d = column % 4;
  return column / 32 * 32 + 16 * h + 8 * (q / 2) + 2 * d + q % 2;
}
// Writes eight codes of one column, starting at k. There is one byte for every two codes.
[[gnu::always_inline]] inline void put_bytes(uint8_t* at, uint32_t word) {
  for (int i = 0; i < 4; ++i) at[i * kColumns] = static_cast<uint8_t>(word >> 8 * i);
}
[[maybe_unused]] void put_nibbles(uint8_t* codes, int64_t column, int64_t k, uint32_t word) {
  put_bytes(codes + k / 2 * kColumns + nibble_byte(column), word);
}

// The bytes of 16 bfloat16 values, in both halves.
struct NibbleTable {
  __m256i low, high;
};
[[maybe_unused]] NibbleTable nibble_table(const uint8_t* bytes) {
  const auto* at = reinterpret_cast<const __m128i*>(bytes);
  return {_mm256_broadcastsi128_si256(_mm_loadu_si128(at)),
          _mm256_broadcastsi128_si256(_mm_loadu_si128(at + 1))};
}

constexpr uint32_t kUpper = 0xFFFF0000u;
alignas(32) constexpr uint32_t kUpperHalves[8] = {kUpper, kUpper, kUpper, kUpper,
                                                  kUpper, kUpper, kUpper, kUpper};

// Decodes element `i` of a pair along k for 32 columns. The first column is vector * 8.
[[gnu::always_inline]] inline void look_up_nibbles(const NibbleTable& table, const uint8_t* at, int vector,
                                                   int i, __m256 (&out)[kNibbleWide]) {
  __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + vector * kLanes));
  if (i == 1) codes = _mm256_srli_epi16(codes, 4);
  codes = and_memory(codes, kNibbles);
  const __m256i low = _mm256_shuffle_epi8(table.low, codes), high = _mm256_shuffle_epi8(table.high, codes);
  const __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
  out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(first, 16));
  out[1] = _mm256_castsi256_ps(and_memory(first, kUpperHalves));
  out[2] = _mm256_castsi256_ps(_mm256_slli_epi32(second, 16));
  out[3] = _mm256_castsi256_ps(and_memory(second, kUpperHalves));
}

// Does the same for 16 floats, given as four tables of 16 bytes, one for each byte of a float.
// Because of two more interleaves, column 8 q + 4 h + d of each 32 comes from byte 16 h + 4 q + d.
[[maybe_unused]] void put_wide_nibbles(uint8_t* codes, int64_t column, int64_t k, uint32_t word) {
  const int64_t q = column % 32 / 8, h = column % 8 / 4, d = column % 4;
  put_bytes(codes + k / 2 * kColumns + column / 32 * 32 + 16 * h + 4 * q + d, word);
}
[[maybe_unused, gnu::always_inline]] inline void look_up_floats(const uint8_t* tables, const uint8_t* at,
                                                                int vector, int i,
                                                                __m256 (&out)[kNibbleWide]) {
  const auto table = [&](int byte) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(tables + 16 * byte)));
  };
  __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + vector * kLanes));
  if (i == 1) codes = _mm256_srli_epi16(codes, 4);
  codes = and_memory(codes, kNibbles);
  const __m256i b0 = _mm256_shuffle_epi8(table(0), codes), b1 = _mm256_shuffle_epi8(table(1), codes);
  const __m256i b2 = _mm256_shuffle_epi8(table(2), codes), b3 = _mm256_shuffle_epi8(table(3), codes);
  const __m256i low0 = _mm256_unpacklo_epi8(b0, b1), low1 = _mm256_unpacklo_epi8(b2, b3);
  const __m256i high0 = _mm256_unpackhi_epi8(b0, b1), high1 = _mm256_unpackhi_epi8(b2, b3);
  out[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(low0, low1));
  out[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(low0, low1));
  out[2] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(high0, high1));
  out[3] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(high0, high1));
}

}  // namespace
}  // namespace qcts::avx2
