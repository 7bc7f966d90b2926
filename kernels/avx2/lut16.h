// SPDX-License-Identifier: BSD-3-Clause
// Looks up the values of 4-bit codes, for the AVX2 variants of dequantize.
// The 16 values of a group are computed and rounded once, and then looked up.
// If results have 16 bits, 64 codes cost 4 byte shuffles and 14 other operations, which is 0.3 per element.
// A float costs two permutations and a blend. The values never leave the registers.
// Storing them and loading them again at another width cost 190 cycles for a group of 128,
// because the load waits for the stores that it overlaps. Everything else takes 60 cycles.
#pragma once

#include "kernels/avx2/elements.h"
#include "kernels/avx2/stores.h"

namespace qcts::avx2 {
namespace {

// The values of the 16 codes, in the forms that lookups need.
struct Lut16 {
  __m256 wide[2];     // for F32, the values; for other dtypes, floats that round to the values
  __m256i low, high;  // bytes of the 16-bit values, in both halves
};

// Returns element `index` of an array of dtype.
[[gnu::always_inline]] inline float one_element(uint32_t dtype, const void* array, int64_t index) {
  if (dtype == QCTS_F32) {
    float value;
    std::memcpy(&value, static_cast<const char*>(array) + 4 * index, 4);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, static_cast<const char*>(array) + 2 * index, 2);
  if (dtype == QCTS_F16) return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

// Splits 16-bit values into two tables of bytes. The values of codes 0 .. 7 are in the lower half.
[[gnu::always_inline]] inline void split_bytes(__m256i values, __m256i* low, __m256i* high) {
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_and_si256(values, _mm256_set1_epi16(0xFF)), _mm256_srli_epi16(values, 8));
  *low = _mm256_permute4x64_epi64(bytes, 0x88);
  *high = _mm256_permute4x64_epi64(bytes, 0xDD);
}

// Rounds eight floats to a dtype other than F32.
[[gnu::always_inline]] inline __m128i narrow8(uint32_t dtype, __m256 value) {
  return dtype == QCTS_F16 ? _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT) : to_bf16(value);
}
[[gnu::always_inline]] inline Lut16 lut16_of(uint32_t dtype, __m256 first, __m256 second) {
  Lut16 table = {{first, second}, _mm256_setzero_si256(), _mm256_setzero_si256()};
  if (dtype != QCTS_F32)
    split_bytes(_mm256_set_m128i(narrow8(dtype, second), narrow8(dtype, first)), &table.low, &table.high);
  return table;
}

// Returns a bfloat16 table of finite values.
// `outer` has the values of codes 0-3 and 8-11, and `inner` has the values of codes 4-7 and 12-15.
// Packing puts them in order.
[[gnu::always_inline]] inline Lut16 finite_bf16_lut16(__m256 outer, __m256 inner) {
  Lut16 table = {{outer, inner}, _mm256_setzero_si256(), _mm256_setzero_si256()};
  split_bytes(finite_bf16(outer, inner), &table.low, &table.high);
  return table;
}

// Returns a table of values[code] * scale. Products are rounded to float32, then to dtype.
[[gnu::always_inline]] inline Lut16 lut16_of_products(uint32_t dtype, const float* values, float scale) {
  const __m256 factor = _mm256_set1_ps(scale);
  return lut16_of(dtype, _mm256_mul_ps(_mm256_loadu_ps(values), factor),
                  _mm256_mul_ps(_mm256_loadu_ps(values + 8), factor));
}

// Stores the values of 32 codes in order, 64 bytes in all.
// The codes have the order c0-7 c16-23 | c8-15 c24-31.
[[gnu::always_inline]] inline void look_up_narrow(const Lut16& table, __m256i codes, bool past_caches,
                                                  char* to) {
  const __m256i low = _mm256_shuffle_epi8(table.low, codes), high = _mm256_shuffle_epi8(table.high, codes);
  store32(to, _mm256_unpacklo_epi8(low, high), past_caches);
  store32(to + 32, _mm256_unpackhi_epi8(low, high), past_caches);
}

// The permutation reads the three low bits of a code, and the blend reads the fourth bit.
[[gnu::always_inline]] inline void look_up_wide8(const Lut16& table, __m128i codes, char* to) {
  const __m256i wide = _mm256_cvtepu8_epi32(codes);
  const __m256 low = _mm256_permutevar8x32_ps(table.wide[0], wide);
  const __m256 high = _mm256_permutevar8x32_ps(table.wide[1], wide);
  _mm256_storeu_ps(reinterpret_cast<float*>(to),
                   _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(wide, 28))));
}
[[gnu::always_inline]] inline void look_up_wide(const Lut16& table, __m256i codes, char* to) {
  const __m128i first = _mm256_castsi256_si128(codes), second = _mm256_extracti128_si256(codes, 1);
  look_up_wide8(table, first, to);
  look_up_wide8(table, second, to + 32);
  look_up_wide8(table, _mm_srli_si128(first, 8), to + 64);
  look_up_wide8(table, _mm_srli_si128(second, 8), to + 96);
}

// Stores the values of the first 16 codes, in the order c0-7 | c8-15.
template <bool kWide>
[[gnu::always_inline]] inline void look_up_16(const Lut16& table, __m256i codes, char* to) {
  if (kWide) {
    look_up_wide8(table, _mm256_castsi256_si128(codes), to);
    look_up_wide8(table, _mm256_extracti128_si256(codes, 1), to + 32);
  } else {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(to),
        _mm256_unpacklo_epi8(_mm256_shuffle_epi8(table.low, codes), _mm256_shuffle_epi8(table.high, codes)));
  }
}

// 64 codes, one per byte, in the order that look_up_narrow expects. `first` has the first 32 codes.
// Taking the double words 0 2 4 6 | 1 3 5 7 of the pairs gives that order.
struct Codes64 {
  __m256i first, second;
};
template <bool kHighFirst>
[[gnu::always_inline]] inline Codes64 split_pairs(__m256i pairs) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i apart = _mm256_permutevar8x32_epi32(pairs, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
  const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(apart, 4), nibble),
                lower = _mm256_and_si256(apart, nibble);
  const __m256i even = kHighFirst ? upper : lower, odd = kHighFirst ? lower : upper;
  return {_mm256_unpacklo_epi8(even, odd), _mm256_unpackhi_epi8(even, odd)};
}

// Looks up `count` codes that begin at a byte boundary.
// If kHighFirst is true, the even code is in the high nibble.
// If kWide is true, dtype is F32. kernels/avx2/stores.h explains past_caches.
template <bool kHighFirst, bool kWide>
[[gnu::always_inline]] inline void look_up_codes(const Lut16& table, const uint8_t* codes, int64_t count,
                                                 char* to, bool past_caches = false) {
  constexpr int64_t kBytes = kWide ? 4 : 2;
  const auto look_up = [&](__m256i some, char* at, bool past) {
    kWide ? look_up_wide(table, some, at) : look_up_narrow(table, some, past, at);
  };
  int64_t k = 0;
  for (; k + 64 <= count; k += 64) {
    const Codes64 both =
        split_pairs<kHighFirst>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes + k / 2)));
    look_up(both.first, to + k * kBytes, past_caches);
    look_up(both.second, to + (k + 32) * kBytes, past_caches);
  }
  const auto first32 = [](const uint8_t* at) {
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    return split_pairs<kHighFirst>(_mm256_castsi128_si256(pairs)).first;
  };
  if (k + 32 <= count) {
    look_up(first32(codes + k / 2), to + k * kBytes, past_caches);
    k += 32;
  }
  if (k + 16 <= count) {
    const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes + k / 2));
    look_up_16<kWide>(table, split_pairs<kHighFirst>(_mm256_castsi128_si256(pairs)).first, to + k * kBytes);
    k += 16;
  }
  if (k == count) return;
  uint8_t rest[16] = {};
  char values[32 * kBytes];
  std::memcpy(rest, codes + k / 2, static_cast<size_t>((count - k + 1) / 2));
  look_up(first32(rest), values, false);
  std::memcpy(to + k * kBytes, values, static_cast<size_t>((count - k) * kBytes));
}
template <bool kHighFirst>
[[gnu::always_inline]] inline void look_up_codes(uint32_t dtype, const Lut16& table, const uint8_t* codes,
                                                 int64_t count, char* to, bool past_caches = false) {
  dtype == QCTS_F32 ? look_up_codes<kHighFirst, true>(table, codes, count, to)
                    : look_up_codes<kHighFirst, false>(table, codes, count, to, past_caches);
}

}  // namespace
}  // namespace qcts::avx2
