// SPDX-License-Identifier: BSD-3-Clause
// Quantizes groups of intx and int8, or rows of x, for the AVX2 variants.
// There are three passes over eight groups of a row, which stay in L1.
// The first pass finds the ranges, with the bits of the elements as integers.
// The second computes the parameters of all eight groups in the lanes of a vector,
// so no element waits for three divisions.
// The third computes the codes and prefetches the next row; 32 elements of bfloat16 take 27 operations.
// Two instructions per element limit the speed to half of the speed of a plain copy.
// One call per group with separate roundings reached 0.07 to 0.09 of the speed of a copy.
// This slow way remains for groups whose scale is tiny or not finite.
#pragma once

#include "kernels/avx2/int8.h"
#include "kernels/avx2/stores.h"
#include "kernels/families/affine_groups.h"
#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kGroupsAtOnce = kLanes, kMaxGroupsAtOnce = 2 * kLanes;  // wider vectors take more groups

// Elements as integers of their bits. The greatest signed integer is the greatest positive number.
// The greatest unsigned integer, if it is a negative number, is the least number.
// A NaN lies beyond the infinity of its sign.
template <uint32_t kDtype>
struct Ordered {
  static constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  static __m256i signed_max(__m256i a, __m256i b) {
    return kBytes == 4 ? _mm256_max_epi32(a, b) : _mm256_max_epi16(a, b);
  }
  static __m256i negative_zeros() {
    return kBytes == 4 ? _mm256_set1_epi32(INT32_MIN) : _mm256_set1_epi16(INT16_MIN);
  }
};

// Loads 32 bytes of a group, starting at byte `at`. Bytes beyond the end of the group are zeros.
[[gnu::always_inline]] inline __m256i group_bytes(const char* group, int64_t at, int64_t end) {
  if (at + 32 <= end) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group + at));
  char some[32] = {};
  std::memcpy(some, group + at, static_cast<size_t>(end - at));
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(some));
}

// `low` is min(0, w) and `high` is max(0, w) for each of `count` consecutive groups, at most eight.
// Both are NaN if the group contains a NaN. Lanes beyond `count` are 0.
struct Ranges {
  __m256 low, high;
};
template <uint32_t kDtype>
[[gnu::always_inline]] inline Ranges affine_ranges(const char* groups, int64_t count, int64_t group) {
  using Bits = Ordered<kDtype>;
  const int64_t end = group * Bits::kBytes;
  __m256i tops[kGroupsAtOnce], bottoms[kGroupsAtOnce];
#pragma GCC unroll 8
  for (int64_t g = 0; g < kGroupsAtOnce; ++g) {
    const int64_t stop = g < count ? end : 0;
    __m256i top = _mm256_setzero_si256(), bottom = Bits::negative_zeros();
    const auto add = [&](int64_t at) {
      const __m256i w = group_bytes(groups + g * end, at, end);
      top = Bits::signed_max(top, w);
      bottom = unsigned_max<kDtype>(bottom, w);
    };
    int64_t at = 0;
    for (; at + 64 <= stop; at += 64) add(at), add(at + 32);
    for (; at < stop; at += 32) add(at);
    tops[g] = top;
    bottoms[g] = bottom;
  }
  const __m256 high = reduce_eight<kDtype>(tops, Bits::signed_max),
               low = reduce_eight<kDtype>(bottoms, unsigned_max<kDtype>);
  const __m256 nan = _mm256_cmp_ps(low, high, _CMP_UNORD_Q), canonical = _mm256_set1_ps(NAN);
  return {_mm256_blendv_ps(low, canonical, nan), _mm256_blendv_ps(high, canonical, nan)};
}

[[gnu::always_inline]] inline __m256 where_less(__m256 a, __m256 b, __m256 then, __m256 otherwise) {
  return _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(a, b, _CMP_LT_OQ));
}

// Clamps codes; NaN becomes 0.
[[gnu::always_inline]] inline __m256 clamped_codes(const AffineRecipe& recipe, __m256 code) {
  const __m256 kept =
      _mm256_min_ps(_mm256_max_ps(code, _mm256_set1_ps(recipe.code_min)), _mm256_set1_ps(recipe.code_max));
  return _mm256_and_ps(kept, _mm256_cmp_ps(code, code, _CMP_ORD_Q));
}
[[gnu::always_inline]] inline __m256 nearest_integers(__m256 value) {
  return _mm256_round_ps(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// Parameters of several groups. Every step rounds as in affine_group.
struct AffineGroups {
  alignas(64) float scale[kMaxGroupsAtOnce], reciprocal[kMaxGroupsAtOnce], zero_point[kMaxGroupsAtOnce];
  alignas(64) float less[kMaxGroupsAtOnce], by[kMaxGroupsAtOnce];  // as in OrdinaryScale
  alignas(64) int32_t zero_points[kMaxGroupsAtOnce];               // each zero point twice, in 16 bits
  // one bit per group, set if int8_encode_fast can encode it
  uint32_t ordinary;
};
template <uint32_t kDtype, uint32_t kCommon, float kMinScale>
[[gnu::always_inline]] inline void choose_affine(const AffineRecipe& recipe, const Ranges& range,
                                                 AffineGroups* groups) {
  const auto rounded = [](__m256 value) { return round8(kDtype, value); };
  const __m256 low = range.low, high = range.high, code_min = _mm256_set1_ps(recipe.code_min);
  const float steps = recipe.code_max - recipe.code_min;
  __m256 scale, zero_point = _mm256_setzero_ps();
  if (recipe.mapping == AffineMapping::symmetric) {
    const __m256 above = _mm256_xor_ps(low, _mm256_set1_ps(-0.0f));
    scale = rounded(_mm256_div_ps(where_less(high, above, above, high), _mm256_set1_ps(steps / 2)));
  } else if (recipe.mapping == AffineMapping::symmetric_no_clipping) {
    const __m256 by_low = rounded(_mm256_div_ps(low, code_min)),
                 by_high = rounded(_mm256_div_ps(high, _mm256_set1_ps(recipe.code_max)));
    scale = where_less(by_high, by_low, by_low, by_high);
  } else {
    scale = rounded(_mm256_div_ps(rounded(_mm256_sub_ps(high, low)), _mm256_set1_ps(steps)));
  }
  const __m256 min = _mm256_set1_ps(kMinScale);
  scale = where_less(scale, min, min, scale);
  if (recipe.mapping == AffineMapping::asymmetric) {
    const __m256 below = nearest_integers(rounded(_mm256_div_ps(low, scale)));
    zero_point = clamped_codes(recipe, rounded(_mm256_sub_ps(code_min, below)));
  }
  _mm256_store_ps(groups->scale, scale);
  _mm256_store_ps(groups->zero_point, zero_point);
  const __m256 reciprocal = round8(kCommon, _mm256_div_ps(_mm256_set1_ps(1), scale));
  const __m256i zero = _mm256_cvtps_epi32(zero_point);
  _mm256_store_ps(groups->reciprocal, reciprocal);
  _mm256_store_ps(groups->less, _mm256_mul_ps(reciprocal, _mm256_set1_ps(kFar<kCommon> - 1)));
  _mm256_store_ps(groups->by, _mm256_mul_ps(reciprocal, _mm256_set1_ps(kFar<kCommon>)));
  _mm256_store_si256(reinterpret_cast<__m256i*>(groups->zero_points),
                     _mm256_blend_epi16(zero, _mm256_slli_epi32(zero, 16), 0xAA));
  groups->ordinary = static_cast<uint32_t>(
      _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(scale, _mm256_set1_ps(0x1p-100f), _CMP_GE_OQ),
                                       _mm256_cmp_ps(scale, _mm256_set1_ps(INFINITY), _CMP_LT_OQ))));
}

[[maybe_unused]] void write_affine(const AffineTask& task, int64_t first, int64_t count,
                                   const AffineGroups& groups) {
  const int64_t scale_bytes = task.scale_dtype == QCTS_F32 ? 4 : 2;
  for (int64_t g = 0; g < count; g += kLanes) {
    const int64_t some = count - g < kLanes ? count - g : kLanes;
    const __m256 scale = _mm256_load_ps(groups.scale + g);
    const __m256i zero = _mm256_cvtps_epi32(_mm256_load_ps(groups.zero_point + g));
    char* scales = task.scales + (first + g) * scale_bytes;
    if (some == kLanes)
      store8(task.scale_dtype, scales, scale);
    else
      store_some(task.scale_dtype, scales, scale, some);
    const auto bytes = _mm256_castsi256_si128(narrow_to_bytes(zero, zero, zero, zero));
    std::memcpy(task.zero_points + first + g, &bytes, static_cast<size_t>(some));
  }
}

// Encodes an ordinary group and prefetches the bytes that are next_bytes ahead.
template <uint32_t kDtype, uint32_t kCommon>
[[gnu::always_inline]] inline void quantize_ordinary_group(const OrdinaryScale<kCommon>& scale,
                                                           const char* group, int64_t next_bytes,
                                                           int64_t count, bool past_caches, int8_t* codes) {
  constexpr int64_t kBytes = Ordered<kDtype>::kBytes;
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) {
    for (int64_t line = 0; line < 32 * kBytes; line += 64)
      _mm_prefetch(group + next_bytes + k * kBytes + line, _MM_HINT_T0);
    store32(codes + k, int8_encode_fast<kDtype>(scale, group + k * kBytes), past_caches);
  }
  if (k == count) return;
  char rest[32 * kBytes] = {};
  std::memcpy(rest, group + k * kBytes, static_cast<size_t>((count - k) * kBytes));
  const __m256i some = int8_encode_fast<kDtype>(scale, rest);
  std::memcpy(codes + k, &some, static_cast<size_t>(count - k));
}

// Encodes a group that is not ordinary.
template <uint32_t kDtype, uint32_t kCommon>
[[gnu::noinline]] void quantize_odd_group(const AffineRecipe& recipe, float reciprocal, float zero_point,
                                          const char* group, int64_t count, int8_t* codes) {
  for (int64_t k = 0; k < count; k += kLanes) {
    const __m256 product = _mm256_mul_ps(elements(kDtype, group, k, count), _mm256_set1_ps(reciprocal));
    const __m256 steps = nearest_integers(round8(kCommon, product));
    const __m256 code = round8(kCommon, _mm256_add_ps(steps, _mm256_set1_ps(zero_point)));
    const __m256i some = _mm256_cvtps_epi32(clamped_codes(recipe, code));
    const __m256i bytes = narrow_to_bytes(some, some, some, some);
    std::memcpy(codes + k, &bytes, static_cast<size_t>(count - k < kLanes ? count - k : kLanes));
  }
}

template <uint32_t kCommon>
[[gnu::always_inline]] inline OrdinaryScale<kCommon> ordinary_scale(const AffineRecipe& recipe,
                                                                    const AffineGroups& groups, int64_t g) {
  return {_mm256_set1_ps(groups.less[g]), _mm256_set1_ps(groups.by[g]),
          _mm256_set1_epi32(groups.zero_points[g]), _mm256_set1_epi8(static_cast<int8_t>(recipe.code_min)),
          _mm256_set1_epi8(static_cast<int8_t>(recipe.code_max))};
}

// For 16-bit elements, the AVX-512 variant replaces these steps.
// Codes of groups that are not ordinary may be anything. kMinScale is the min_scale of the recipe.
template <uint32_t kDtype, uint32_t kCommon, float kMinScale>
struct PartsFrom {
  static constexpr int64_t kGroups = kGroupsAtOnce;

  [[gnu::always_inline]] static void choose(const AffineRecipe& recipe, const char* from, int64_t count,
                                            int64_t group, AffineGroups* groups) {
    const Ranges ranges = count == kGroups ? affine_ranges<kDtype>(from, kGroups, group)
                                           : affine_ranges<kDtype>(from, count, group);
    choose_affine<kDtype, kCommon, kMinScale>(recipe, ranges, groups);
  }

  [[gnu::always_inline]] static void codes(const AffineRecipe& recipe, const AffineGroups& groups,
                                           const char* from, int64_t next_bytes, int64_t count, int64_t group,
                                           bool past_caches, int8_t* codes) {
    for (int64_t g = 0; g < count; ++g)
      quantize_ordinary_group<kDtype, kCommon>(ordinary_scale<kCommon>(recipe, groups, g),
                                               from + g * group * Ordered<kDtype>::kBytes, next_bytes, group,
                                               past_caches, codes + g * group);
  }
};

// The parts for intx_recipe and for int8_recipe.
template <uint32_t kDtype, uint32_t kCommon>
using AffineParts = PartsFrom<kDtype, kCommon, kDtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f>;
template <uint32_t kDtype, uint32_t kCommon>
using Int8Parts = PartsFrom<kDtype, kCommon, kInt8MinScale>;

// The parameters of up to kMaxTogether * kGroups groups are computed before any codes.
// The parameters are a chain of about 150 cycles, which the codes of kGroups groups of 32 do not hide.
// With 1 instead of 4, an EPYC Zen 5 took 1.45 times as long, and 1.23 times as long with AVX-512.
// Beyond kTogetherBytes, memory would be idle while the parameters are computed.
constexpr int64_t kMaxTogether = 4, kTogetherBytes = 4096;

// kGroup is the group if it is a constant at compile time.
// Otherwise it is 0. A group of 32 is one iteration of every loop.
template <class Parts, uint32_t kDtype, uint32_t kCommon, int64_t kGroup>
void quantize_affine_row(const AffineTask& task, bool past_caches, int64_t n) {
  constexpr int64_t kBytes = Ordered<kDtype>::kBytes, kGroups = Parts::kGroups;
  const int64_t group = kGroup != 0 ? kGroup : task.group, groups = task.k / group;
  const int64_t fit = kTogetherBytes / (group * kGroups * kBytes);
  const int64_t together = fit < 1 ? 1 : fit < kMaxTogether ? fit : kMaxTogether;
  const char* row = task.data + n * task.ld_bytes;
  int8_t* codes = task.codes + n * task.k;
  AffineGroups chosen[kMaxTogether];
  const auto count_from = [&](int64_t g) { return groups - g < kGroups ? groups - g : kGroups; };
  for (int64_t first = 0; first < groups; first += together * kGroups) {
    const int64_t last = groups - first < together * kGroups ? groups : first + together * kGroups;
    AffineGroups* some = chosen;
    for (int64_t g = first; g < last; g += kGroups, ++some) {
      Parts::choose(task.recipe, row + g * group * kBytes, count_from(g), group, some);
      write_affine(task, n * groups + g, count_from(g), *some);
    }
    some = chosen;
    for (int64_t g = first; g < last; g += kGroups, ++some) {
      const char* from = row + g * group * kBytes;
      const int64_t count = count_from(g);
      Parts::codes(task.recipe, *some, from, task.ld_bytes, count, group, past_caches, codes + g * group);
      for (uint32_t odd = ~some->ordinary & ((1u << count) - 1); odd != 0; odd &= odd - 1) {
        const int64_t i = __builtin_ctz(odd);
        quantize_odd_group<kDtype, kCommon>(task.recipe, some->reciprocal[i], some->zero_point[i],
                                            from + i * group * kBytes, group, codes + (g + i) * group);
      }
    }
  }
}

template <template <uint32_t, uint32_t> class Parts, uint32_t kDtype, uint32_t kCommon>
void quantize_affine_rows(const AffineTask& task, bool past_caches, int64_t first, int64_t last) {
  using Of = Parts<kDtype, kCommon>;
  const auto quantize = task.group == 32 ? quantize_affine_row<Of, kDtype, kCommon, 32>
                                         : quantize_affine_row<Of, kDtype, kCommon, 0>;
  for (int64_t n = first; n < last; ++n) quantize(task, past_caches, n);
}

template <template <uint32_t, uint32_t> class Parts, AffineRecipeOf kRecipe>
void quantize_affine_groups(const qcts_problem& p, int64_t first, int64_t last) {
  const AffineTask task = affine_task(p, kRecipe(p));
  const bool wide = task.recipe.common == QCTS_F32;
  const auto quantize = task.recipe.dtype == QCTS_F32 ? quantize_affine_rows<Parts, QCTS_F32, QCTS_F32>
                        : task.recipe.dtype == QCTS_F16
                            ? wide ? quantize_affine_rows<Parts, QCTS_F16, QCTS_F32>
                                   : quantize_affine_rows<Parts, QCTS_F16, QCTS_F16>
                        : wide ? quantize_affine_rows<Parts, QCTS_BF16, QCTS_F32>
                               : quantize_affine_rows<Parts, QCTS_BF16, QCTS_BF16>;
  const int64_t rows = p.op == QCTS_OP_QUANTIZE ? p.n : p.m;
  quantize(task, is_past_caches(task.codes, rows * task.k, task.group), first, last);
  _mm_sfence();
}

}  // namespace
}  // namespace qcts::avx2
