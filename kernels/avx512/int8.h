// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8,
// for the AVX-512 variants of quantize_activation and for kernels/vnni/int8_linear.h.
// kernels/avx2/int8.h has the recipes.
// bfloat16 is taken 64 elements at a time, as the integers of their bits, and encoded by int8_encode_fast.
// Other dtypes are taken sixteen elements at a time.
// dtype and in_dtype are template parameters,
// because checking them for every vector takes twice as long (EPYC Zen 4).
#pragma once

#include <algorithm>

#include "kernels/avx2/int8.h"
#include "kernels/avx512/int8_encode_fast.h"

namespace qcts::avx512 {
namespace {

// Loads sixteen elements, starting at `k`. Elements beyond k_count are 0.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m512 elements(const char* row, int64_t k, int64_t k_count) {
  const char* at = row + k * (kDtype == QCTS_F32 ? 4 : 2);
  return k + kLanes <= k_count ? load16(kDtype, at) : load_some(kDtype, at, k_count - k);
}

// Returns min(0, x) and max(0, x) of a row. Both are NaN if an element is NaN.
template <uint32_t kDtype>
avx2::Range range_of_row(const char* row, int64_t k_count) {
  __m512 low[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()}, high[2] = {low[0], low[0]};
  __mmask16 nan = 0;
  for (int64_t k = 0; k < k_count; k += 2 * kLanes) {
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      if (k + i * kLanes >= k_count) break;
      const __m512 x = elements<kDtype>(row, k + i * kLanes, k_count);
      low[i] = _mm512_min_ps(low[i], x);
      high[i] = _mm512_max_ps(high[i], x);
      nan |= _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    }
  }
  if (nan != 0) return {NAN, NAN};
  float lows[kLanes], highs[kLanes];
  _mm512_storeu_ps(lows, _mm512_min_ps(low[0], low[1]));
  _mm512_storeu_ps(highs, _mm512_max_ps(high[0], high[1]));
  return {*std::min_element(lows, lows + kLanes), *std::max_element(highs, highs + kLanes)};
}

// Writes the codes of `count` elements, starting at first_k, and returns their sum.
template <uint32_t kDtype, bool kInDtype>
int32_t codes_of_part(const avx2::RowRecipe& recipe, const char* row, int64_t first_k, int64_t count,
                      RowScale chosen, int8_t* codes) {
  const __m512 reciprocal = _mm512_set1_ps(avx2::reciprocal_of(recipe, chosen.scale));
  const __m512 zero_point = _mm512_set1_ps(static_cast<float>(chosen.zero_point));
  const __m512 min = _mm512_set1_ps(recipe.to_127 ? -127 : -128), max = _mm512_set1_ps(127);
  __m512i total = _mm512_setzero_si512();
  for (int64_t k = 0; k < count; k += kLanes) {
    __m512 steps = _mm512_mul_ps(elements<kDtype>(row, first_k + k, first_k + count), reciprocal);
    if (kInDtype) steps = rounded<kDtype>(steps);
    steps = _mm512_roundscale_ps(steps, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 code = _mm512_add_ps(steps, zero_point);
    if (kInDtype) code = rounded<kDtype>(code);
    // NaN becomes 0, and so do the lanes beyond the part.
    const int64_t left = count - k < kLanes ? count - k : kLanes;
    const auto counted =
        static_cast<__mmask16>(_mm512_cmp_ps_mask(code, code, _CMP_ORD_Q) & ((1u << left) - 1));
    code = _mm512_maskz_mov_ps(counted, _mm512_min_ps(_mm512_max_ps(code, min), max));
    const __m512i integers = _mm512_cvtps_epi32(code);
    total = _mm512_add_epi32(total, integers);
    const __m128i bytes = _mm512_cvtepi32_epi8(integers);
    if (left == kLanes)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + k), bytes);
    else
      std::memcpy(codes + k, &bytes, static_cast<size_t>(left));
  }
  int32_t lanes[kLanes], sum = 0;
  _mm512_storeu_si512(lanes, total);
  for (const int32_t each : lanes) sum += each;
  return sum;
}

// Returns min(0, x) and max(0, x) of a row of bfloat16, like avx2::range_of.
[[maybe_unused]] avx2::Range range_of_bf16(const char* row, int64_t k_count) {
  __m512i top = _mm512_setzero_si512(), bottom = _mm512_set1_epi16(INT16_MIN);
  for (int64_t k = 0; k < k_count; k += 32) {
    const __m512i words = _mm512_loadu_si512(row + 2 * (k + 32 <= k_count ? k : k_count - 32));
    top = _mm512_max_epi16(top, words);
    bottom = _mm512_max_epu16(bottom, words);
  }
  return avx2::range_from(
      QCTS_BF16, _mm256_max_epi16(_mm512_castsi512_si256(top), _mm512_extracti64x4_epi64(top, 1)),
      _mm256_max_epu16(_mm512_castsi512_si256(bottom), _mm512_extracti64x4_epi64(bottom, 1)));
}

// Writes the codes of `count` elements with an ordinary scale and returns their sum. `count` is a multiple
// of 64.
template <uint32_t kCommon>
int32_t codes_by_ordinary(const avx2::RowRecipe& recipe, RowScale chosen, const char* at, int64_t count,
                          int8_t* codes) {
  const float reciprocal = avx2::reciprocal_of(recipe, chosen.scale);
  const OrdinaryScale<kCommon> scale = {_mm512_set1_ps(reciprocal * (avx2::kFar<kCommon> - 1)),
                                        _mm512_set1_ps(reciprocal * avx2::kFar<kCommon>),
                                        _mm512_set1_epi16(static_cast<int16_t>(chosen.zero_point))};
  const CodeRange range = {_mm512_set1_epi8(recipe.to_127 ? -127 : -128), _mm512_set1_epi8(127)};
  __m512i total = _mm512_setzero_si512();
  for (int64_t k = 0; k < count; k += 64) {
    const __m512i bytes = range.bytes(scale.codes(at + 2 * k), scale.codes(at + 2 * k + 64));
    const __m512i above = _mm512_xor_si512(bytes, _mm512_set1_epi8(INT8_MIN));
    total = _mm512_add_epi64(total, _mm512_sad_epu8(above, _mm512_setzero_si512()));
    _mm512_storeu_si512(codes + k, bytes);
  }
  int64_t lanes[8], sum = -128 * count;
  _mm512_storeu_si512(lanes, total);
  for (const int64_t each : lanes) sum += each;
  return static_cast<int32_t>(sum);
}

// Selects the loop for a dtype.
struct RowsToInt8 {
  using Codes = FullRange;
  static avx2::Range range_of(uint32_t dtype, const char* row, int64_t k_count) {
    if (dtype == QCTS_F32) return range_of_row<QCTS_F32>(row, k_count);
    if (dtype == QCTS_F16) return range_of_row<QCTS_F16>(row, k_count);
    return k_count < 32 ? range_of_row<QCTS_BF16>(row, k_count) : range_of_bf16(row, k_count);
  }

  static int32_t quantize_part(const avx2::RowRecipe& recipe, const char* row, int64_t first_k, int64_t count,
                               RowScale chosen, int8_t* codes) {
    if (recipe.dtype == QCTS_F32)
      return codes_of_part<QCTS_F32, false>(recipe, row, first_k, count, chosen, codes);
    if (recipe.dtype == QCTS_F16)
      return recipe.in_dtype ? codes_of_part<QCTS_F16, true>(recipe, row, first_k, count, chosen, codes)
                             : codes_of_part<QCTS_F16, false>(recipe, row, first_k, count, chosen, codes);
    const int64_t ordinary = recipe.is_given || !avx2::is_ordinary(chosen.scale) ? 0 : count / 64 * 64;
    const char* at = row + 2 * first_k;
    const int32_t sum = ordinary == 0     ? 0
                        : recipe.in_dtype ? codes_by_ordinary<QCTS_BF16>(recipe, chosen, at, ordinary, codes)
                                          : codes_by_ordinary<QCTS_F32>(recipe, chosen, at, ordinary, codes);
    if (ordinary == count) return sum;
    const auto rest = recipe.in_dtype ? codes_of_part<QCTS_BF16, true> : codes_of_part<QCTS_BF16, false>;
    return sum + rest(recipe, row, first_k + ordinary, count - ordinary, chosen, codes + ordinary);
  }
};

}  // namespace
}  // namespace qcts::avx512
