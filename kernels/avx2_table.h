// Four-bit codes to values for the AVX2 variants of dequantize, and for nothing else: every function has
// internal linkage. A group has 16 values, which are computed once, rounded once, and looked up: two byte
// shuffles a 16-bit result, two permutations and a blend a float.
#pragma once

#include "kernels/avx2.h"
#include "kernels/entry.h"

namespace qcts::avx2 {
namespace {

// The values of the 16 codes, in the forms that lookups want.
struct Table {
  float wide[16];  // of dtype for F32; otherwise what rounds to it once
  uint16_t narrow[16];
  __m128i low, high;  // bytes of narrow
};

// Element `index` of an array of dtype.
[[maybe_unused]] float one_element(uint32_t dtype, const void* array, int64_t index) {
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  char buffer[32] = {};
  const char* at = static_cast<const char*>(array) + index * bytes;
  dtype == QCTS_F32 ? std::memcpy(buffer, at, 4) : std::memcpy(buffer, at, 2);
  return _mm256_cvtss_f32(load8(dtype, buffer));
}

// From table.wide.
[[maybe_unused]] void narrow_table(uint32_t dtype, Table* table) {
  if (dtype == QCTS_F32) return;
  store8(dtype, table->narrow, _mm256_loadu_ps(table->wide));
  store8(dtype, table->narrow + 8, _mm256_loadu_ps(table->wide + 8));
  const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(table->narrow));
  const __m256i low = _mm256_and_si256(values, _mm256_set1_epi16(0xFF)), high = _mm256_srli_epi16(values, 8);
  table->low = _mm_packus_epi16(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  table->high = _mm_packus_epi16(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

// values[code] * scale, a product that is rounded to float32 and then to dtype.
[[maybe_unused]] void fill_products(uint32_t dtype, const float* values, float scale, Table* table) {
  const __m256 factor = _mm256_set1_ps(scale);
  _mm256_storeu_ps(table->wide, _mm256_mul_ps(_mm256_loadu_ps(values), factor));
  _mm256_storeu_ps(table->wide + 8, _mm256_mul_ps(_mm256_loadu_ps(values + 8), factor));
  narrow_table(dtype, table);
}

// 32 codes to 64 bytes. `even` and `odd` are the codes of even and odd k.
[[maybe_unused]] void look_up_narrow(const Table& table, __m128i even, __m128i odd, char* to) {
  const __m128i even_low = _mm_shuffle_epi8(table.low, even), even_high = _mm_shuffle_epi8(table.high, even);
  const __m128i odd_low = _mm_shuffle_epi8(table.low, odd), odd_high = _mm_shuffle_epi8(table.high, odd);
  const __m128i e0 = _mm_unpacklo_epi8(even_low, even_high), e1 = _mm_unpackhi_epi8(even_low, even_high);
  const __m128i o0 = _mm_unpacklo_epi8(odd_low, odd_high), o1 = _mm_unpackhi_epi8(odd_low, odd_high);
  auto* out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out, _mm_unpacklo_epi16(e0, o0));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(e0, o0));
  _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(e1, o1));
  _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(e1, o1));
}

// The permutation reads the three low bits of a code, the blend its fourth.
[[maybe_unused]] __m256 look_up8(const Table& table, __m256i codes) {
  const __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.wide), codes);
  const __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table.wide + 8), codes);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(codes, 28)));
}

[[maybe_unused]] void look_up_wide(const Table& table, __m128i even, __m128i odd, char* to) {
  const __m128i in_order[2] = {_mm_unpacklo_epi8(even, odd), _mm_unpackhi_epi8(even, odd)};
  for (int half = 0; half < 2; ++half) {
    auto* out = reinterpret_cast<float*>(to) + 16 * half;
    _mm256_storeu_ps(out, look_up8(table, _mm256_cvtepu8_epi32(in_order[half])));
    _mm256_storeu_ps(out + 8, look_up8(table, _mm256_cvtepu8_epi32(_mm_srli_si128(in_order[half], 8))));
  }
}

// 16 codes, the even one in the low nibble.
[[maybe_unused]] void look_up_16(uint32_t dtype, const Table& table, const uint8_t* codes, char* to) {
  const __m128i nibble = _mm_set1_epi8(15);
  const __m128i pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes));
  const __m128i in_order =
      _mm_unpacklo_epi8(_mm_and_si128(pairs, nibble), _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble));
  if (dtype == QCTS_F32) {
    auto* out = reinterpret_cast<float*>(to);
    _mm256_storeu_ps(out, look_up8(table, _mm256_cvtepu8_epi32(in_order)));
    _mm256_storeu_ps(out + 8, look_up8(table, _mm256_cvtepu8_epi32(_mm_srli_si128(in_order, 8))));
    return;
  }
  const __m128i low = _mm_shuffle_epi8(table.low, in_order), high = _mm_shuffle_epi8(table.high, in_order);
  auto* out = reinterpret_cast<__m128i*>(to);
  _mm_storeu_si128(out, _mm_unpacklo_epi8(low, high));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(low, high));
}

// `count` codes from a byte border on, `kHighFirst`: the even one in the high nibble.
template <bool kHighFirst>
void look_up_codes(uint32_t dtype, const Table& table, const uint8_t* codes, int64_t count, char* to) {
  const __m128i nibble = _mm_set1_epi8(15);
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) {
    const __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + k / 2));
    const __m128i upper = _mm_and_si128(_mm_srli_epi16(pairs, 4), nibble),
                  lower = _mm_and_si128(pairs, nibble);
    const __m128i even = kHighFirst ? upper : lower, odd = kHighFirst ? lower : upper;
    if (dtype == QCTS_F32) {
      look_up_wide(table, even, odd, to + 4 * k);
    } else {
      look_up_narrow(table, even, odd, to + 2 * k);
    }
  }
  for (; k < count; ++k) {
    const int code = (k % 2 == 0) == kHighFirst ? codes[k / 2] >> 4 : codes[k / 2] & 15;
    if (dtype == QCTS_F32) {
      std::memcpy(to + 4 * k, &table.wide[code], 4);
    } else {
      std::memcpy(to + 2 * k, &table.narrow[code], 2);
    }
  }
}

}  // namespace
}  // namespace qcts::avx2
