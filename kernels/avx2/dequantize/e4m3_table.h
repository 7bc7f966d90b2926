// SPDX-License-Identifier: BSD-3-Clause
// Looks up the products of float8 e4m3 codes and one scale in bfloat16, for the AVX2 variants of dequantize.
// A power of two does not change how a product is rounded.
// So the low nibble of a code (its fraction and the last bit of its exponent) selects one of 16 values.
// The rest of the exponent is added to the upper byte of the value.
// The first 16 codes, which include the subnormals, have their own table. 32 codes cost 22 operations.
// Conversion, multiplication and rounding would cost 18 operations for eight codes.
#pragma once

#include "kernels/avx2/float8.h"
#include "kernels/avx2/lut16.h"

namespace qcts::avx2 {
namespace {

struct E4m3Table {
  __m256i first_low, first_high;  // bytes for codes 0 .. 15
  __m256i low, high;              // bytes for codes 16 .. 31, less 1 in the upper byte
};

// True if the products of all codes with the scale are normal numbers in float32 and in bfloat16.
[[maybe_unused]] bool has_e4m3_table(float scale) {
  const float magnitude = __builtin_fabsf(scale);
  return magnitude >= 0x1p-110f && magnitude <= 0x1p110f;
}

[[maybe_unused]] E4m3Table e4m3_table(float scale) {
  alignas(32) static constexpr uint8_t kCodes[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                     22, 23, 24, 25, 26, 27, 28, 29, 30, 31};
  const __m256 factor = _mm256_set1_ps(scale);
  const auto eight = [&](int first) {
    return to_bf16(_mm256_mul_ps(finite_small_float<Float8::e4m3>(kCodes + first), factor));
  };
  E4m3Table table;
  split_bytes(_mm256_set_m128i(eight(8), eight(0)), &table.first_low, &table.first_high);
  split_bytes(_mm256_set_m128i(eight(24), eight(16)), &table.low, &table.high);
  table.high = _mm256_sub_epi8(table.high, _mm256_set1_epi8(1));
  return table;
}

// `codes` have the order that look_up_narrow expects. Both bytes of a NaN become all ones.
[[gnu::always_inline]] inline void look_up_e4m3(const E4m3Table& table, __m256i codes, bool past_caches,
                                                char* to) {
  const __m256i magnitude = _mm256_and_si256(codes, _mm256_set1_epi8(0x7F));
  const __m256i sign = _mm256_xor_si256(codes, magnitude);
  const __m256i exponent = _mm256_and_si256(_mm256_srli_epi16(codes, 4), _mm256_set1_epi8(7));
  const __m256i first = _mm256_cmpgt_epi8(_mm256_set1_epi8(16), magnitude);
  const __m256i nan = _mm256_cmpeq_epi8(magnitude, _mm256_set1_epi8(0x7F));
  const auto choose = [&](__m256i of_first, __m256i of_rest) {
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(of_rest, magnitude),
                              _mm256_shuffle_epi8(of_first, magnitude), first);
  };
  const __m256i low = _mm256_or_si256(choose(table.first_low, table.low), nan);
  const __m256i high = _mm256_or_si256(_mm256_add_epi8(choose(table.first_high, table.high), exponent), nan);
  const __m256i signed_high = _mm256_xor_si256(high, sign);
  store32(to, _mm256_unpacklo_epi8(low, signed_high), past_caches);
  store32(to + 32, _mm256_unpackhi_epi8(low, signed_high), past_caches);
}

[[maybe_unused]] void look_up_e4m3_codes(const E4m3Table& table, const uint8_t* codes, int64_t count,
                                         bool past_caches, char* to) {
  const auto thirty_two = [&](const void* from, bool past, char* at) {
    const __m256i some = _mm256_loadu_si256(static_cast<const __m256i*>(from));
    look_up_e4m3(table, _mm256_permute4x64_epi64(some, 0xD8), past, at);
  };
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) thirty_two(codes + k, past_caches, to + 2 * k);
  if (k == count) return;
  uint8_t rest[32] = {};
  char values[64];
  std::memcpy(rest, codes + k, static_cast<size_t>(count - k));
  thirty_two(rest, false, values);
  std::memcpy(to + 2 * k, values, static_cast<size_t>(2 * (count - k)));
}

}  // namespace
}  // namespace qcts::avx2
