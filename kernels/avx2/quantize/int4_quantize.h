// SPDX-License-Identifier: BSD-3-Clause
// Computes _choose_qparams_affine_tinygemm and _quantize_affine_tinygemm of torchao 0.18,
// for the AVX2 and AVX-512 variants.
// Results equal those of quantize/int4_tinygemm_scalar.cc. Every step is rounded to the weight's dtype.
//
// There are three passes over 32 groups of a row, which stay in L1.
// The first pass finds the ranges;
// it compares narrow dtypes as the integers of their bits, in two operations per vector.
// The second computes the parameters of eight groups at once, so no element waits for their two divisions.
// The third computes the codes and prefetches the next row.
// In bfloat16, codes take seven operations per vector (bf16_rounded) in addition to packing.
#pragma once

#include "kernels/avx2/group_params.h"
#include "kernels/avx2/quantize.h"
#include "kernels/avx2/ranges.h"

namespace qcts::avx2 {
namespace {

// Rounds eight values to the dtype; NaN stays NaN.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m256 rounded(__m256 value) {
  if (kDtype == QCTS_F32) return value;
  if (kDtype == QCTS_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  return _mm256_castsi256_ps(
      _mm256_and_si256(round_to_upper(value), _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
}

// 32 groups of a row.
struct Int4Groups {
  alignas(32) float low[kTileGroups], scale[kTileGroups], reciprocal[kTileGroups];
  // one bit per group. `finite`: some codes are not 0. `ordinary`: bf16_rounded may round it.
  uint32_t finite, ordinary;
};

// Stores eight scales and eight zeros alternately.
// Scales and zeros are values of the dtype, so a bfloat16 is the upper half of a float.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void store_pairs(__m256 scale, __m256 zero, char* pairs) {
  auto* to = reinterpret_cast<__m256i*>(pairs);
  if (kDtype == QCTS_BF16) {
    const __m256 nan = _mm256_cmp_ps(zero, zero, _CMP_UNORD_Q);
    const __m256i quiet =
        _mm256_castps_si256(_mm256_blendv_ps(zero, _mm256_set1_ps(__builtin_nanf("")), nan));
    _mm256_storeu_si256(to,
                        _mm256_blend_epi16(_mm256_srli_epi32(_mm256_castps_si256(scale), 16), quiet, 0xAA));
  } else if (kDtype == QCTS_F16) {
    const __m128i scales = _mm256_cvtps_ph(scale, _MM_FROUND_TO_NEAREST_INT),
                  zeros = _mm256_cvtps_ph(zero, _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(
        to, _mm256_set_m128i(_mm_unpackhi_epi16(scales, zeros), _mm_unpacklo_epi16(scales, zeros)));
  } else {
    const __m256i low = _mm256_castps_si256(_mm256_unpacklo_ps(scale, zero)),
                  high = _mm256_castps_si256(_mm256_unpackhi_ps(scale, zero));
    _mm256_storeu_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

// Computes scales and zeros of groups [g, g + 8) and also writes them to `pairs`.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void choose_int4(const Ends& ends, float min_scale, int64_t g,
                                               Int4Groups* groups, char* pairs) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const __m256 min = ends.min, max = ends.max, eight = _mm256_set1_ps(8);
  const __m256 steps =
      rounded<kDtype>(_mm256_div_ps(rounded<kDtype>(_mm256_sub_ps(max, min)), _mm256_set1_ps(15)));
  const __m256 nan = _mm256_cmp_ps(min, max, _CMP_UNORD_Q);
  const __m256 scale = _mm256_blendv_ps(_mm256_max_ps(_mm256_set1_ps(min_scale), steps),
                                        _mm256_set1_ps(__builtin_nanf("")), nan);
  const __m256 half = rounded<kDtype>(_mm256_mul_ps(scale, eight));
  const __m256 zero = rounded<kDtype>(_mm256_add_ps(min, half));
  const __m256 low = rounded<kDtype>(_mm256_sub_ps(zero, half));
  _mm256_store_ps(groups->low + g, low);
  _mm256_store_ps(groups->scale + g, scale);
  _mm256_store_ps(groups->reciprocal + g, _mm256_div_ps(_mm256_set1_ps(1), scale));
  const auto below = [](__m256 value, float limit) {  // compares magnitudes; false for NaN
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), value);
    return static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_cmp_ps(magnitude, _mm256_set1_ps(limit), _CMP_LT_OQ)));
  };
  groups->finite |= (below(low, __builtin_inff()) & below(scale, __builtin_inff())) << g;
  groups->ordinary |= (below(min, 0x1p110f) & below(max, 0x1p110f) & ~below(scale, 0x1p-100f)) << g;
  store_pairs<kDtype>(scale, zero, pairs + 2 * g * kBytes);
}

struct Int4Scale {
  __m256 low, scale, reciprocal, reciprocal_65537;
};

// Returns round((x - low) / scale) as int32.
// In bfloat16, the product with the reciprocal rounds like the quotient.
// No quotient of two 8-bit numbers is halfway between two 8-bit numbers,
// because an odd number times b would need a ninth bit.
// The nearest quotient is 2^-17 away from such a tie, and the product is 2^-23 away from the quotient.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m256i int4_steps(__m256 x, const Int4Scale& by) {
  // `above` is infinite if low was rounded down and x is near the largest value of the dtype.
  const __m256 above = rounded<kDtype>(_mm256_sub_ps(x, by.low));
  const __m256 steps = rounded<kDtype>(kDtype == QCTS_BF16 ? _mm256_mul_ps(above, by.reciprocal)
                                                           : _mm256_div_ps(above, by.scale));
  return _mm256_cvtps_epi32(_mm256_min_ps(steps, _mm256_set1_ps(16)));
}

// Does the same for 32 ordinary elements of bfloat16, narrowed to bytes.
// Each step is done for all four vectors before the next step.
// Taking one vector after the other is 6 % slower, because each step of a vector waits for the step before.
[[gnu::always_inline]] inline __m256i ordinary_int4_bytes(const char* at, const Int4Scale& by) {
  const __m256i zero = _mm256_setzero_si256(), a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
                b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
  const __m256i words[4] = {_mm256_unpacklo_epi16(zero, a), _mm256_unpackhi_epi16(zero, a),
                            _mm256_unpacklo_epi16(zero, b), _mm256_unpackhi_epi16(zero, b)};
  __m256 v[4];
  __m256i steps[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = _mm256_sub_ps(_mm256_castsi256_ps(words[i]), by.low);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) v[i] = bf16_rounded(v[i]);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
    steps[i] = _mm256_cvtps_epi32(bf16_rounded_product(v[i], by.reciprocal, by.reciprocal_65537));
  return _mm256_packus_epi16(_mm256_packs_epi32(steps[0], steps[1]), _mm256_packs_epi32(steps[2], steps[3]));
}

// Packs 32 codes in 0 .. 15, two in each 16-bit lane, in the order 0-7 16-23 | 8-15 24-31.
// The even code is in the high nibble.
// For bfloat16, this order comes from widening by unpacking and narrowing by packing.
template <uint32_t kDtype, bool kOrdinary>
[[gnu::always_inline]] inline __m256i int4_pairs(const char* at, const Int4Scale& by) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 32 : 16;
  __m256i bytes;
  if (kDtype == QCTS_BF16 && kOrdinary) {
    bytes = ordinary_int4_bytes(at, by);
  } else {
    const auto eight = [&](int i) { return int4_steps<kDtype>(load8(kDtype, at + i * kBytes), by); };
    bytes = _mm256_permutevar8x32_epi32(
        _mm256_packus_epi16(_mm256_packs_epi32(eight(0), eight(1)), _mm256_packs_epi32(eight(2), eight(3))),
        _mm256_setr_epi32(0, 4, 2, 6, 1, 5, 3, 7));
  }
  return _mm256_maddubs_epi16(_mm256_min_epu8(bytes, _mm256_set1_epi8(15)), _mm256_set1_epi16(0x0110));
}

// Joins the 16 bytes of pairs in one vector and the 16 bytes in the other.
[[gnu::always_inline]] inline __m256i join_pairs(__m256i a, __m256i b) {
  return _mm256_permutevar8x32_epi32(_mm256_packus_epi16(a, b), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

// Writes the codes of the `count` elements of a group.
// An element has kBytes bytes. Flips the bits kFlip in every byte.
// pairs_of(from) returns the codes of 32 elements, two in each 16-bit lane,
// in the order 0-7 16-23 | 8-15 24-31.
template <int64_t kBytes, uint8_t kFlip = 0, class Pairs>
[[gnu::always_inline]] inline void quantize_by_32(const char* at, int64_t row_bytes, int64_t count,
                                                  const Pairs& pairs_of, uint8_t* out) {
  const auto joined = [](__m256i a, __m256i b) {
    return _mm256_xor_si256(join_pairs(a, b), _mm256_set1_epi8(static_cast<char>(kFlip)));
  };
  int64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    fetch_rows<64 * kBytes>(at + i * kBytes, row_bytes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 2),
                        joined(pairs_of(at + i * kBytes), pairs_of(at + (i + 32) * kBytes)));
  }
  const auto thirty_two = [&](const char* from) {
    const __m256i pairs = pairs_of(from);
    return _mm256_castsi256_si128(joined(pairs, pairs));
  };
  if (i + 32 <= count) {
    fetch_rows<32 * kBytes>(at + i * kBytes, row_bytes);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i / 2), thirty_two(at + i * kBytes));
    i += 32;
  }
  if (i == count) return;
  char rest[32 * kBytes] = {};
  std::memcpy(rest, at + i * kBytes, static_cast<size_t>((count - i) * kBytes));
  const __m128i pairs = thirty_two(rest);
  std::memcpy(out + i / 2, &pairs, static_cast<size_t>((count - i) / 2));
}

template <uint32_t kDtype, bool kOrdinary>
void quantize_int4_group(const char* at, int64_t row_bytes, int64_t count, const Int4Scale& by,
                         uint8_t* out) {
  quantize_by_32<kDtype == QCTS_F32 ? 4 : 2>(
      at, row_bytes, count, [&](const char* from) { return int4_pairs<kDtype, kOrdinary>(from, by); }, out);
}

// Returns the minimum scale. Int4OpaqueTensor.from_hp passes eps 1e-6.
// Int4TilePackedTo4dTensor.from_hp passes no eps, so the minimum is the smallest normal number of bfloat16.
[[maybe_unused]] float int4_min_scale(const qcts_problem& p) {
  if (p.layout != nullptr && std::strcmp(p.layout, "tile_packed_4d") == 0) return 0x1p-126f;
  return round_once(p.w_dtype, 1e-6f);
}

// The AVX-512 variant replaces these steps: ranges of 16-bit floats, and codes of ordinary groups of
// bfloat16. quantize_groups returns a bit for each group that it encoded.
struct Int4Parts : RangesOfGroups {
  static uint32_t quantize_groups(const char*, int64_t, int64_t, uint32_t, const Int4Groups&, uint8_t*) {
    return 0;
  }
};

// Quantizes `groups` groups of a row, at most as many as a tile has.
template <class Parts, uint32_t kDtype>
void quantize_int4_groups(const char* at, int64_t row_bytes, int64_t count, int64_t group, float min_scale,
                          char* pairs, uint8_t* out) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  Int4Groups groups;
  groups.finite = groups.ordinary = 0;
  for (int64_t g = 0; g < count; g += kLanes)
    choose_int4<kDtype>(ends_of<Parts, kDtype>(at + g * group * kBytes, count - g, group), min_scale, g,
                        &groups, pairs);
  uint32_t left = UINT32_MAX >> (kTileGroups - count);
  if constexpr (kDtype == QCTS_BF16)
    left &= ~Parts::quantize_groups(at, row_bytes, group, left & groups.ordinary, groups, out);
  for (; left != 0; left &= left - 1) {
    const int g = __builtin_ctz(left);
    const char* from = at + g * group * kBytes;
    uint8_t* to = out + g * group / 2;
    if ((groups.finite >> g & 1) == 0) {
      std::memset(to, 0, static_cast<size_t>(group / 2));
    } else if (kDtype == QCTS_BF16 && (groups.ordinary >> g & 1) != 0) {
      const Int4Scale by = {_mm256_set1_ps(groups.low[g]),
                            {},
                            _mm256_set1_ps(groups.reciprocal[g]),
                            _mm256_set1_ps(groups.reciprocal[g] * 65537)};
      quantize_int4_group<QCTS_BF16, true>(from, row_bytes, group, by, to);
    } else {
      const Int4Scale by = {_mm256_set1_ps(groups.low[g]),
                            _mm256_set1_ps(groups.scale[g]),
                            _mm256_set1_ps(groups.reciprocal[g]),
                            {}};
      quantize_int4_group<kDtype, false>(from, row_bytes, group, by, to);
    }
  }
}

template <class Parts, uint32_t kDtype>
void quantize_int4_dtype(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int kBytes = kDtype == QCTS_F32 ? 4 : 2;
  auto* qdata = static_cast<uint8_t*>(out_plane(p, "qdata"));
  void* plane = out_plane(p, "scale_and_zero");
  const float min_scale = int4_min_scale(p);
  ParameterTile<2 * kBytes> pairs;
  for_tiles(first, last, p.k / p.group, [&](const Tile& tile) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const int64_t n = tile.first_n + row, k = tile.first_group * p.group;
      quantize_int4_groups<Parts, kDtype>(static_cast<const char*>(p.x) + n * p.ldx_bytes + k * kBytes,
                                          p.ldx_bytes, tile.groups, p.group, min_scale, pairs.at(row, 0),
                                          qdata + (n * p.k + k) / 2);
    }
    store_tile(tile, &pairs, p.n, plane);
  });
}

template <class Parts>
void quantize_int4_rows(const qcts_problem& p, int64_t first, int64_t last) {
  if (p.w_dtype == QCTS_F32) return quantize_int4_dtype<Parts, QCTS_F32>(p, first, last);
  if (p.w_dtype == QCTS_F16) return quantize_int4_dtype<Parts, QCTS_F16>(p, first, last);
  quantize_int4_dtype<Parts, QCTS_BF16>(p, first, last);
}

}  // namespace
}  // namespace qcts::avx2
