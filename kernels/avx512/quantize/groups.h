// SPDX-License-Identifier: BSD-3-Clause
// Quantizes groups of intx, or rows of x, in bfloat16, for the AVX-512 variants.
// The method is that of kernels/avx2/quantize/groups.h, with sixteen groups at once.
// 32 elements cost 14 operations for their codes, 8 for the range of a group of 32,
// and 7 for its share of the parameters.
#pragma once

#include "kernels/avx2/quantize/groups.h"
#include "kernels/avx512/int8_encode_fast.h"
#include "kernels/avx512/reduce.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

constexpr int64_t kGroupsAtOnce = kLanes;

struct SignedMax {
  [[gnu::always_inline]] __m512i operator()(__m512i a, __m512i b) const { return _mm512_max_epi16(a, b); }
};

// The same as avx2::Ranges, for `count` groups of bfloat16, at most sixteen.
struct Ranges {
  __m512 low, high;
};
[[gnu::always_inline]] inline Ranges affine_ranges(const char* groups, int64_t count, int64_t group) {
  const int64_t end = 2 * group;
  __m512i tops[kGroupsAtOnce], bottoms[kGroupsAtOnce];
#pragma GCC unroll 16
  for (int64_t g = 0; g < kGroupsAtOnce; ++g) {
    const char* from = groups + g * end;
    const int64_t stop = g < count ? end : 0;
    __m512i top = _mm512_setzero_si512(), bottom = _mm512_set1_epi16(INT16_MIN);
    const auto add = [&](__m512i w) {
      top = SignedMax()(top, w);
      bottom = UnsignedMax()(bottom, w);
    };
    int64_t at = 0;
    for (; at + 64 <= stop; at += 64) add(_mm512_loadu_si512(from + at));
    if (at < stop) {
      char some[64] = {};
      std::memcpy(some, from + at, static_cast<size_t>(stop - at));
      add(_mm512_loadu_si512(some));
    }
    tops[g] = top;
    bottoms[g] = bottom;
  }
  const __m512 high = max_of_sixteen<QCTS_BF16>(tops, SignedMax()),
               low = max_of_sixteen<QCTS_BF16>(bottoms, UnsignedMax());
  const __mmask16 nan = _mm512_cmp_ps_mask(low, high, _CMP_UNORD_Q);
  const __m512 canonical = _mm512_set1_ps(__builtin_nanf(""));
  return {_mm512_mask_mov_ps(low, nan, canonical), _mm512_mask_mov_ps(high, nan, canonical)};
}

[[gnu::always_inline]] inline __m512 where_less(__m512 a, __m512 b, __m512 then, __m512 otherwise) {
  return _mm512_mask_mov_ps(otherwise, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), then);
}

// Computes the parameters of groups. Every step rounds as in affine_group.
template <uint32_t kCommon>
[[gnu::always_inline]] inline void choose_affine(const AffineRecipe& recipe, const Ranges& range,
                                                 avx2::AffineGroups* groups) {
  const auto rounded = [](__m512 value) { return avx512::rounded<QCTS_BF16>(value); };
  const __m512 low = range.low, high = range.high, code_min = _mm512_set1_ps(recipe.code_min),
               code_max = _mm512_set1_ps(recipe.code_max);
  const float steps = recipe.code_max - recipe.code_min;
  __m512 scale, zero_point = _mm512_setzero_ps();
  if (recipe.mapping == AffineMapping::symmetric) {
    const __m512 above = _mm512_sub_ps(_mm512_setzero_ps(), low);
    scale = rounded(_mm512_div_ps(where_less(high, above, above, high), _mm512_set1_ps(steps / 2)));
  } else if (recipe.mapping == AffineMapping::symmetric_no_clipping) {
    const __m512 by_low = rounded(_mm512_div_ps(low, code_min)),
                 by_high = rounded(_mm512_div_ps(high, code_max));
    scale = where_less(by_high, by_low, by_low, by_high);
  } else {
    scale = rounded(_mm512_div_ps(rounded(_mm512_sub_ps(high, low)), _mm512_set1_ps(steps)));
  }
  const __m512 min = _mm512_set1_ps(0x1p-126f);
  scale = where_less(scale, min, min, scale);
  if (recipe.mapping == AffineMapping::asymmetric) {
    const __m512 below = _mm512_roundscale_ps(rounded(_mm512_div_ps(low, scale)), _MM_FROUND_TO_NEAREST_INT);
    const __m512 code = rounded(_mm512_sub_ps(code_min, below));
    const __m512 within = _mm512_min_ps(_mm512_max_ps(code, code_min), code_max);
    zero_point = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(code, code, _CMP_ORD_Q), within);
  }
  const __m512 reciprocal = avx512::rounded<kCommon>(_mm512_div_ps(_mm512_set1_ps(1), scale));
  const __m512i zero = _mm512_cvtps_epi32(zero_point);
  _mm512_store_ps(groups->scale, scale);
  _mm512_store_ps(groups->zero_point, zero_point);
  _mm512_store_ps(groups->reciprocal, reciprocal);
  _mm512_store_ps(groups->less, _mm512_mul_ps(reciprocal, _mm512_set1_ps(avx2::kFar<kCommon> - 1)));
  _mm512_store_ps(groups->by, _mm512_mul_ps(reciprocal, _mm512_set1_ps(avx2::kFar<kCommon>)));
  _mm512_store_si512(groups->zero_points, _mm512_or_si512(_mm512_and_si512(zero, _mm512_set1_epi32(0xFFFF)),
                                                          _mm512_slli_epi32(zero, 16)));
  groups->ordinary = _mm512_cmp_ps_mask(scale, _mm512_set1_ps(0x1p-100f), _CMP_GE_OQ) &
                     _mm512_cmp_ps_mask(scale, _mm512_set1_ps(__builtin_inff()), _CMP_LT_OQ);
}

template <uint32_t kDtype, uint32_t kCommon>
struct WideAffine : avx2::AffineParts<kDtype, kCommon> {};

template <uint32_t kCommon>
struct WideAffine<QCTS_BF16, kCommon> {
  static constexpr int64_t kGroups = kGroupsAtOnce;

  [[gnu::always_inline]] static void choose(const AffineRecipe& recipe, const char* from, int64_t count,
                                            int64_t group, avx2::AffineGroups* groups) {
    const Ranges ranges =
        count == kGroups ? affine_ranges(from, kGroups, group) : affine_ranges(from, count, group);
    choose_affine<kCommon>(recipe, ranges, groups);
  }

  [[gnu::always_inline]] static void codes(const AffineRecipe& recipe, const avx2::AffineGroups& groups,
                                           const char* from, int64_t next_bytes, int64_t count, int64_t group,
                                           bool past_caches, int8_t* codes) {
    const CodeRange range = {_mm512_set1_epi8(static_cast<int8_t>(recipe.code_min)),
                             _mm512_set1_epi8(static_cast<int8_t>(recipe.code_max))};
    const auto scale_of = [&](int64_t g) {
      return OrdinaryScale<kCommon>{_mm512_set1_ps(groups.less[g]), _mm512_set1_ps(groups.by[g]),
                                    _mm512_set1_epi32(groups.zero_points[g])};
    };
    if (group == 32 && count % 2 == 0) {  // two groups side by side
      const bool streams = past_caches && is_line(codes);
      for (int64_t g = 0; g < count; g += 2) {
        const char* at = from + g * 64;
        avx2::fetch_rows<128>(at, next_bytes);
        store64(codes + g * 32, range.bytes(scale_of(g).codes(at), scale_of(g + 1).codes(at + 64)), streams);
      }
      return;
    }
    for (int64_t g = 0; g < count; ++g) {
      const char* at = from + g * group * 2;
      int8_t* to = codes + g * group;
      const OrdinaryScale<kCommon> scale = scale_of(g);
      const bool streams = past_caches && is_line(to);
      int64_t k = 0;
      for (; k + 64 <= group; k += 64) {
        avx2::fetch_rows<128>(at + 2 * k, next_bytes);
        store64(to + k, range.bytes(scale.codes(at + 2 * k), scale.codes(at + 2 * k + 64)), streams);
      }
      if (k != group)
        avx2::quantize_ordinary_group<QCTS_BF16, kCommon>(avx2::ordinary_scale<kCommon>(recipe, groups, g),
                                                          at + 2 * k, next_bytes, group - k, false, to + k);
    }
  }
};

}  // namespace
}  // namespace qcts::avx512
