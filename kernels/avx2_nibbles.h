// Four-bit codes for `linear` with AVX2, and for nothing else: every function has internal linkage.
//
// A code is looked up: two byte shuffles give the low and the high byte of the bfloat16 that it means, an
// interleave joins them, and a shift or a mask makes the float. For 64 codes that is 3 operations to take the
// nibbles apart, 4 shuffles, 4 interleaves and 8 shifts or masks: 19, where sign extension by two shifts and a
// conversion takes 24, and any table of 16 bfloat16 costs the same: integers, e2m1, normal float.
// Layout of a block of 64 columns: for each 2 k, 64 bytes, the even k in their low nibbles. Of each 32 columns,
// column 8 q + 4 h + d stands in byte 16 h + 8 (q / 2) + 2 d + q % 2, which is where the interleave within 128
// bits takes it from.
#pragma once

#include "kernels/avx2_linear.h"

namespace qcts::avx2 {
namespace {

constexpr int kNibbleStep = 2, kNibbleWide = 4, kNibbleBytesPerK = kColumns / 2;

[[maybe_unused]] int64_t nibble_byte(int64_t column) {
  const int64_t q = column % 32 / 8, h = column % 8 / 4, d = column % 4;
  return column / 32 * 32 + 16 * h + 8 * (q / 2) + 2 * d + q % 2;
}
[[maybe_unused]] void put_nibble(uint8_t* codes, int64_t column, int64_t k, uint32_t code) {
  codes[k / 2 * kColumns + nibble_byte(column)] |= static_cast<uint8_t>(code << (k % 2 == 0 ? 0 : 4));
}

// The bytes of 16 bfloat16, in both halves.
struct NibbleTable {
  __m256i low, high;
};
[[maybe_unused]] NibbleTable nibble_table(const uint8_t* bytes) {
  const auto* at = reinterpret_cast<const __m128i*>(bytes);
  return {_mm256_broadcastsi128_si256(_mm_loadu_si128(at)), _mm256_broadcastsi128_si256(_mm_loadu_si128(at + 1))};
}

[[gnu::always_inline]] inline void look_up_four(const NibbleTable& table, __m256i codes, __m256* out) {
  const __m256i low = _mm256_shuffle_epi8(table.low, codes), high = _mm256_shuffle_epi8(table.high, codes);
  const __m256i first = _mm256_unpacklo_epi8(low, high), second = _mm256_unpackhi_epi8(low, high);
  const __m256i upper = _mm256_set1_epi32(static_cast<int>(0xFFFF0000u));
  out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(first, 16));
  out[1] = _mm256_castsi256_ps(_mm256_and_si256(first, upper));
  out[2] = _mm256_castsi256_ps(_mm256_slli_epi32(second, 16));
  out[3] = _mm256_castsi256_ps(_mm256_and_si256(second, upper));
}

// 2 k of the 32 columns from `vector` on.
[[gnu::always_inline]] inline void look_up_nibbles(const NibbleTable& table, const uint8_t* at, int vector,
                                                   __m256 (*out)[kNibbleWide]) {
  const __m256i pairs = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + vector * kLanes));
  const __m256i nibble = _mm256_set1_epi8(15);
  look_up_four(table, _mm256_and_si256(pairs, nibble), out[0]);
  look_up_four(table, _mm256_and_si256(_mm256_srli_epi16(pairs, 4), nibble), out[1]);
}

// 64 scales of dtype, widened.
[[maybe_unused]] void widen_scales(uint32_t dtype, const uint8_t* at, float* out) {
  for (int v = 0; v < kVectors; ++v)
    _mm256_storeu_ps(out + v * kLanes, load8(dtype, at + v * kLanes * static_cast<int>(dtype_bytes(dtype))));
}

}  // namespace
}  // namespace qcts::avx2
