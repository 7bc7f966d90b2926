// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8 with one scale per row, for the AVX2 variants. The policies are:
//   Int8Tensor.from_hp(x, PerRow()) of torchao 0.18.0: steps are in float32
//   _apply_int8_act_asym_per_token_quant_dequant of torchao 0.18.0: every step is rounded to the dtype of x
//   _int8_symm_per_token_reduced_range_quant of torchao 0.5.0 to 0.17.0: codes are -127 .. 127;
//     steps are rounded to bfloat16 if x has that dtype, and otherwise stay in float32
//   a given scale: see kernels/families/int8_x.h
#pragma once

#include <math.h>

#include "kernels/avx2/int8_encode_fast.h"
#include "kernels/avx2/ranges.h"
#include "kernels/families/int8_x.h"

namespace qcts::avx2 {
namespace {

struct RowRecipe {
  uint32_t dtype;  // dtype of x
  bool asymmetric;
  // every step is rounded to dtype, and the minimum scale is the smallest normal number of dtype
  bool in_dtype;
  bool to_127 = false;    // symmetric, codes -127 .. 127; the minimum scale is 1e-5
  bool is_given = false;  // the scale is given rather than computed
  RowScale given = {};
};

// Returns the recipe for the policy of p, which is listed in kernels/families/int8_x.h.
// The caller fills in a given scale.
[[maybe_unused]] RowRecipe int8_row_recipe(const qcts_problem& p) {
  const bool to_127 = std::strcmp(p.activation, "dyn_row_sym_127") == 0;
  return {p.x_dtype, std::strcmp(p.activation, "dyn_row_asym") == 0, to_127 && p.x_dtype == QCTS_BF16, to_127,
          has_given_scale(p.activation)};
}
[[maybe_unused]] float round1(uint32_t dtype, float value) {
  return _mm256_cvtss_f32(round8(dtype, _mm256_set1_ps(value)));
}

// Loads eight elements, starting at `k`. Elements beyond the row are 0.
[[gnu::always_inline]] inline __m256 elements(uint32_t dtype, const char* row, int64_t k, int64_t k_count) {
  const char* at = row + k * (dtype == QCTS_F32 ? 4 : 2);
  return k + kLanes <= k_count ? load8(dtype, at) : load_some(dtype, at, k_count - k);
}

// `low` is min(0, x) and `high` is max(0, x) over a row. Both are NaN if an element is NaN.
struct Range {
  float low, high;
};
[[maybe_unused]] Range range_of_floats(uint32_t dtype, const char* row, int64_t k_count) {
  __m256 low = _mm256_setzero_ps(), high = low, nan = low;
  for (int64_t k = 0; k < k_count; k += kLanes) {
    const __m256 x = elements(dtype, row, k, k_count);
    low = _mm256_min_ps(low, x);
    high = _mm256_max_ps(high, x);
    nan = _mm256_or_ps(nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  }
  if (_mm256_movemask_ps(nan) != 0) return {NAN, NAN};
  float lows[kLanes], highs[kLanes];
  _mm256_storeu_ps(lows, low);
  _mm256_storeu_ps(highs, high);
  Range range = {0, 0};
  for (int i = 0; i < kLanes; ++i) {
    if (lows[i] < range.low) range.low = lows[i];
    if (highs[i] > range.high) range.high = highs[i];
  }
  return range;
}

// Returns the range of 16-bit floats and zero.
// The floats are compared as integers (kernels/avx2/ranges.h), starting from 0 and -0.
// A NaN lies beyond the infinity of its sign.
[[gnu::always_inline]] inline Range range_from(uint32_t dtype, __m256i top, __m256i bottom) {
  uint16_t min, max;
  range_of_ends(top, bottom, &min, &max);
  const float low = float_of_bits(dtype, min), high = float_of_bits(dtype, max);
  return low != low || high != high ? Range{NAN, NAN} : Range{low, high};
}
[[maybe_unused]] Range range_of(uint32_t dtype, const char* row, int64_t k_count) {
  constexpr int64_t kStep = 64;
  if (dtype == QCTS_F32 || k_count < kStep) return range_of_floats(dtype, row, k_count);
  __m256i top[2], bottom[2];
  for (int i = 0; i < 2; ++i) top[i] = _mm256_setzero_si256(), bottom[i] = _mm256_set1_epi16(INT16_MIN);
  for (int64_t k = 0; k < k_count; k += kStep) {
    const char* at = row + 2 * (k + kStep <= k_count ? k : k_count - kStep);  // some elements are taken twice
    for (int i = 0; i < 4; ++i) {
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32 * i));
      top[i % 2] = _mm256_max_epi16(top[i % 2], words);
      bottom[i % 2] = _mm256_max_epu16(bottom[i % 2], words);
    }
  }
  return range_from(dtype, _mm256_max_epi16(top[0], top[1]), _mm256_max_epu16(bottom[0], bottom[1]));
}

// Codes is FullRange or ReducedRange.
template <class Codes = FullRange>
RowScale scale_of(const RowRecipe& recipe, Range range) {
  const auto rounded = [&](float value) { return round1(recipe.dtype, value); };
  if (range.low != range.low && !recipe.in_dtype) return {range.low, 0};
  const float span = recipe.asymmetric         ? rounded(range.high - range.low)
                     : -range.low > range.high ? -range.low
                                               : range.high;
  constexpr float kSteps = Codes::kMax - Codes::kMin;
  float scale = rounded(span / (recipe.asymmetric ? kSteps : recipe.to_127 ? 127.0f : kSteps / 2));
  const float min = recipe.to_127              ? rounded(1e-5f)
                    : !recipe.in_dtype         ? 0x1p-23f
                    : recipe.dtype == QCTS_F16 ? 0x1p-14f
                                               : 0x1p-126f;
  if (scale < min) scale = min;
  if (!recipe.asymmetric) return {scale, 0};
  const float below = nearbyintf(rounded(range.low / scale));
  constexpr float kMin = Codes::kMin, kMax = Codes::kMax;
  const float zero_point = recipe.in_dtype ? rounded(kMin - below) : kMin - below;
  if (zero_point != zero_point) return {scale, 0};
  return {scale, static_cast<int32_t>(zero_point < kMin ? kMin : zero_point > kMax ? kMax : zero_point)};
}

template <class Codes = FullRange>
RowScale row_scale(const RowRecipe& recipe, const char* row, int64_t k_count) {
  return recipe.is_given ? recipe.given : scale_of<Codes>(recipe, range_of(recipe.dtype, row, k_count));
}

// Returns the codes of eight elements as int32. NaN becomes 0.
template <class Codes = FullRange>
[[gnu::always_inline]] inline __m256i codes_of(const RowRecipe& recipe, __m256 x, __m256 reciprocal,
                                               __m256 zero_point) {
  __m256 steps = _mm256_mul_ps(x, reciprocal);
  if (recipe.in_dtype) steps = round8(recipe.dtype, steps);
  steps = _mm256_round_ps(steps, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 code = _mm256_add_ps(steps, zero_point);
  if (recipe.in_dtype) code = round8(recipe.dtype, code);
  const __m256 number = _mm256_cmp_ps(code, code, _CMP_ORD_Q);
  const __m256 min = _mm256_set1_ps(recipe.to_127 ? -127 : Codes::kMin);
  code = _mm256_min_ps(_mm256_max_ps(code, min), _mm256_set1_ps(Codes::kMax));
  return _mm256_cvtps_epi32(_mm256_and_ps(code, number));
}

[[maybe_unused]] float reciprocal_of(const RowRecipe& recipe, float scale) {
  return recipe.in_dtype ? round1(recipe.dtype, 1.0f / scale) : 1.0f / scale;
}

// Writes the codes of `count` elements, starting at first_k, and returns their sum.
template <class Codes>
int32_t quantize_floats(const RowRecipe& recipe, const char* row, int64_t first_k, int64_t count,
                        RowScale chosen, int8_t* codes) {
  const __m256 reciprocal = _mm256_set1_ps(reciprocal_of(recipe, chosen.scale));
  const __m256 zero_point = _mm256_set1_ps(static_cast<float>(chosen.zero_point));
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i total = _mm256_setzero_si256();
  for (int64_t k = 0; k < count; k += kLanes) {
    const __m256 x = elements(recipe.dtype, row, first_k + k, first_k + count);
    const __m256i left = _mm256_set1_epi32(static_cast<int>(count - k < kLanes ? count - k : kLanes));
    const __m256i wide =
        _mm256_and_si256(codes_of<Codes>(recipe, x, reciprocal, zero_point), _mm256_cmpgt_epi32(left, lane));
    total = _mm256_add_epi32(total, wide);
    const __m256i words = _mm256_packs_epi32(wide, wide);
    const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(words, words),
                                                      _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
    if (count - k >= kLanes) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(codes + k), _mm256_castsi256_si128(bytes));
      continue;
    }
    int8_t eight[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(eight), _mm256_castsi256_si128(bytes));
    std::memcpy(codes + k, eight, static_cast<size_t>(count - k));
  }
  int32_t lanes[kLanes], sum = 0;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), total);
  for (const int32_t each : lanes) sum += each;
  return sum;
}

// Does the same with int8_encode_fast. `count` is a multiple of 32.
template <uint32_t kDtype, uint32_t kCommon>
int32_t quantize_ordinary(const OrdinaryScale<kCommon>& scale, const char* at, int64_t count, int8_t* codes) {
  const __m256i zero = _mm256_setzero_si256(), signs = _mm256_set1_epi8(INT8_MIN);
  __m256i total = zero;
  for (int64_t k = 0; k < count; k += 32) {
    const __m256i bytes = int8_encode_fast<kDtype>(scale, at + 2 * k);
    total = _mm256_add_epi64(total, _mm256_sad_epu8(_mm256_xor_si256(bytes, signs), zero));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k), bytes);
  }
  int64_t lanes[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), total);
  return static_cast<int32_t>(lanes[0] + lanes[1] + lanes[2] + lanes[3] - 128 * count);
}

template <uint32_t kCommon, class Codes = FullRange>
[[gnu::always_inline]] inline OrdinaryScale<kCommon> ordinary_scale(const RowRecipe& recipe,
                                                                    RowScale chosen) {
  const float reciprocal = reciprocal_of(recipe, chosen.scale);
  return {_mm256_set1_ps(reciprocal * (kFar<kCommon> - 1)), _mm256_set1_ps(reciprocal * kFar<kCommon>),
          _mm256_set1_epi16(static_cast<int16_t>(chosen.zero_point)),
          _mm256_set1_epi8(recipe.to_127 ? -127 : Codes::kMin), _mm256_set1_epi8(Codes::kMax)};
}

// Writes the codes of `count` elements, starting at first_k, and returns their sum.
// A given scale does not come from the range of the row, so int8_encode_fast cannot use it.
template <class Codes>
int32_t quantize_part(const RowRecipe& recipe, const char* row, int64_t first_k, int64_t count,
                      RowScale chosen, int8_t* codes) {
  const int64_t whole =
      recipe.dtype != QCTS_F32 && !recipe.is_given && is_ordinary(chosen.scale) ? count / 32 * 32 : 0;
  int32_t sum = 0;
  if (whole != 0) {
    const char* at = row + 2 * first_k;
    const auto quantize = [&]<uint32_t kDtype>() {
      return recipe.in_dtype ? quantize_ordinary<kDtype, kDtype>(
                                   ordinary_scale<kDtype, Codes>(recipe, chosen), at, whole, codes)
                             : quantize_ordinary<kDtype, QCTS_F32>(
                                   ordinary_scale<QCTS_F32, Codes>(recipe, chosen), at, whole, codes);
    };
    sum = recipe.dtype == QCTS_F16 ? quantize.template operator()<QCTS_F16>()
                                   : quantize.template operator()<QCTS_BF16>();
  }
  return whole == count ? sum
                        : sum + quantize_floats<Codes>(recipe, row, first_k + whole, count - whole, chosen,
                                                       codes + whole);
}

// Steps of both passes over a row. The AVX-512 variant replaces them.
template <class CodesOfX>
struct RowsToCodes {
  using Codes = CodesOfX;
  static Range range_of(uint32_t dtype, const char* row, int64_t k_count) {
    return avx2::range_of(dtype, row, k_count);
  }
  static int32_t quantize_part(const RowRecipe& recipe, const char* row, int64_t first_k, int64_t count,
                               RowScale chosen, int8_t* codes) {
    return avx2::quantize_part<Codes>(recipe, row, first_k, count, chosen, codes);
  }
};
using RowsToInt8 = RowsToCodes<FullRange>;

}  // namespace
}  // namespace qcts::avx2
