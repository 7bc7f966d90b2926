// SPDX-License-Identifier: BSD-3-Clause
// Computes MSLK's int4_row_quantize_zp and int4_row_quantize, for the AVX2 and AVX-512 variants.
// Results equal those of quantize/int4_plain_scalar.cc. All steps are in float32.
//
// There are three passes over up to 32 groups of a row, which stay in L1.
// The first pass finds the ranges; it compares 16-bit floats as the integers of their bits.
// The second computes the parameters of eight groups at once.
// The third computes the codes. A code is round(v / scale).
// The quotient is computed as a product with the reciprocal and one Newton step, in two fused operations.
// This result and the exact quotient round to the same integer.
// To prove it, the seven floats v around every tie i + 1/2 below 16 were divided and compared,
// for every significand of a scale.
// An error of 2^-45 can affect no other floats. 32 elements take 28 operations without a branch.
// In bfloat16, one in 17 groups of 32 has a true tie, which is too many to predict.
#pragma once

#include <math.h>

#include "kernels/avx2/quantize/int4_quantize.h"

namespace qcts::avx2 {
namespace {

constexpr float kMinRange = 1e-6f;

// 32 groups of a row. `min` is subtracted from an element, and the difference is divided by the scale.
struct PlainGroups {
  alignas(32) float min[kTileGroups], scale[kTileGroups], reciprocal[kTileGroups];
  uint32_t ordinary;  // one bit per group, set if its reciprocal may replace the division
};

// Computes the scales and zeros of eight groups and also writes them to their tiles.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void choose_plain(const Ends& ends, bool symmetric, int64_t g,
                                                PlainGroups* groups, char* scales, char* zeros) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const __m256 sign = _mm256_set1_ps(-0.0f), nan = _mm256_cmp_ps(ends.min, ends.max, _CMP_UNORD_Q);
  const __m256 size = symmetric
                          ? _mm256_max_ps(_mm256_andnot_ps(sign, ends.min), _mm256_andnot_ps(sign, ends.max))
                          : _mm256_sub_ps(ends.max, ends.min);
  const __m256 scale = _mm256_blendv_ps(
      _mm256_div_ps(_mm256_max_ps(_mm256_set1_ps(kMinRange), size), _mm256_set1_ps(symmetric ? 8.0f : 15.0f)),
      _mm256_set1_ps(NAN), nan);
  const __m256 min = symmetric ? _mm256_setzero_ps() : ends.min;
  const __m256 zero = symmetric
                          ? _mm256_setzero_ps()
                          : _mm256_blendv_ps(_mm256_add_ps(min, _mm256_mul_ps(scale, _mm256_set1_ps(8))),
                                             _mm256_set1_ps(NAN), nan);
  _mm256_store_ps(groups->min + g, _mm256_blendv_ps(min, zero, nan));
  _mm256_store_ps(groups->scale + g, scale);
  _mm256_store_ps(groups->reciprocal + g, _mm256_div_ps(_mm256_set1_ps(1), scale));
  groups->ordinary |=
      static_cast<uint32_t>(_mm256_movemask_ps(_mm256_cmp_ps(scale, _mm256_set1_ps(0x1p100f), _CMP_LT_OQ)))
      << g;
  store8(kDtype, scales + g * kBytes, scale);
  store8(kDtype, zeros + g * kBytes, zero);
}

// The ways to compute the codes of a group.
enum class Way {
  from_min,   // ordinary, asymmetric: 0 to 15 scales above the minimum, so nothing needs clamping
  from_zero,  // ordinary, symmetric: -8 to 8 scales; 8 has no code
  with_care,  // not ordinary: encodes infinities too, and NaN as 0
};

struct PlainScale {
  __m256 min, scale, reciprocal;
  __m256i first;  // 8 in each 16-bit lane if the first code is -8, otherwise 0
};

// Loads 16 elements as two vectors, which packing puts in order.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void load_16(const char* at, __m256 (&out)[2]) {
  if (kDtype == QCTS_BF16) {
    const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
                  zero = _mm256_setzero_si256();
    out[0] = _mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, words));
    out[1] = _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, words));
    return;
  }
  const __m256 a = load8(kDtype, at), b = load8(kDtype, at + (kDtype == QCTS_F32 ? 32 : 16));
  out[0] = _mm256_permute2f128_ps(a, b, 0x20);
  out[1] = _mm256_permute2f128_ps(a, b, 0x31);
}

// Returns the distance of 16 elements from the minimum, counted in scales, as 16-bit integers.
// Way::with_care returns codes plus 8.
template <Way kWay>
[[gnu::always_inline]] inline __m256i plain_codes(const __m256 (&w)[2], const PlainScale& by) {
  __m256i steps[2], nan[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m256 v = kWay == Way::from_zero ? w[i] : _mm256_sub_ps(w[i], by.min);
    if (kWay != Way::with_care) {
      const __m256 near = _mm256_mul_ps(v, by.reciprocal);
      steps[i] =
          _mm256_cvtps_epi32(_mm256_fmadd_ps(_mm256_fnmadd_ps(near, by.scale, v), by.reciprocal, near));
      continue;
    }
    const __m256 quotient = _mm256_div_ps(v, by.scale);
    nan[i] = _mm256_castps_si256(_mm256_cmp_ps(quotient, quotient, _CMP_UNORD_Q));
    steps[i] =
        _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(quotient, _mm256_set1_ps(16)), _mm256_set1_ps(-16)));
  }
  const __m256i packed = _mm256_packs_epi32(steps[0], steps[1]);
  if (kWay != Way::with_care) return packed;
  return _mm256_blendv_epi8(_mm256_add_epi16(packed, by.first), _mm256_set1_epi16(8),
                            _mm256_packs_epi32(nan[0], nan[1]));
}

// Packs the codes of 32 elements, two in each 16-bit lane, in the order 0-7 16-23 | 8-15 24-31.
// The even code is in the low nibble.
// Each nibble is the code plus 8, which is the code with its fourth bit flipped.
template <uint32_t kDtype, Way kWay>
[[gnu::always_inline]] inline __m256i plain_pairs(const char* at, const PlainScale& by) {
  __m256 w[2][2];
  load_16<kDtype>(at, w[0]);
  load_16<kDtype>(at + (kDtype == QCTS_F32 ? 64 : 32), w[1]);
  const __m256i a = plain_codes<kWay>(w[0], by), b = plain_codes<kWay>(w[1], by),
                places = _mm256_set1_epi16(0x1001);
  if (kWay == Way::from_min) return _mm256_maddubs_epi16(_mm256_packus_epi16(a, b), places);
  if (kWay == Way::from_zero) {
    const __m256i bytes = _mm256_min_epi8(_mm256_packs_epi16(a, b), _mm256_set1_epi8(7));
    return _mm256_add_epi16(_mm256_maddubs_epi16(places, bytes), _mm256_set1_epi16(0x88));
  }
  return _mm256_maddubs_epi16(_mm256_min_epu8(_mm256_packus_epi16(a, b), _mm256_set1_epi8(15)), places);
}

template <uint32_t kDtype, Way kWay>
[[gnu::always_inline]] inline void quantize_plain_group(const char* at, int64_t row_bytes, int64_t count,
                                                        const PlainScale& by, uint8_t* out) {
  quantize_by_32<kDtype == QCTS_F32 ? 4 : 2, 0x88>(
      at, row_bytes, count, [&](const char* from) { return plain_pairs<kDtype, kWay>(from, by); }, out);
}

// The AVX-512 variant replaces these steps: ranges, and codes of ordinary groups of bfloat16.
// quantize_groups returns a bit for each group that it encoded.
struct PlainParts : RangesOfGroups {
  static uint32_t quantize_groups(const char*, int64_t, int64_t, bool, const PlainGroups&, uint8_t*) {
    return 0;
  }
};

// Quantizes `count` groups of a row, at most as many as a tile has.
template <class Parts, uint32_t kDtype>
void quantize_plain_groups(const char* at, int64_t row_bytes, int64_t count, int64_t group, bool symmetric,
                           char* scales, char* zeros, uint8_t* out) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  PlainGroups groups;
  groups.ordinary = 0;
  for (int64_t g = 0; g < count; g += kLanes) {
    const char* from = at + g * group * kBytes;
    choose_plain<kDtype>(ends_of<Parts, kDtype>(from, count - g, group), symmetric, g, &groups, scales,
                         zeros);
  }
  uint32_t left = UINT32_MAX >> (kTileGroups - count);
  groups.ordinary &= left;
  if constexpr (kDtype == QCTS_BF16)
    left &= ~Parts::quantize_groups(at, row_bytes, group, symmetric, groups, out);
  for (; left != 0; left &= left - 1) {
    const int g = __builtin_ctz(left);
    const PlainScale by = {_mm256_set1_ps(groups.min[g]), _mm256_set1_ps(groups.scale[g]),
                           _mm256_set1_ps(groups.reciprocal[g]), _mm256_set1_epi16(symmetric ? 8 : 0)};
    const char* from = at + g * group * kBytes;
    uint8_t* to = out + g * group / 2;
    if ((groups.ordinary >> g & 1) == 0)
      quantize_plain_group<kDtype, Way::with_care>(from, row_bytes, group, by, to);
    else if (symmetric)
      quantize_plain_group<kDtype, Way::from_zero>(from, row_bytes, group, by, to);
    else
      quantize_plain_group<kDtype, Way::from_min>(from, row_bytes, group, by, to);
  }
}

template <class Parts, uint32_t kDtype>
void quantize_plain_dtype(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int kBytes = kDtype == QCTS_F32 ? 4 : 2;
  auto* qdata = static_cast<uint8_t*>(out_plane(p, "qdata"));
  const bool symmetric = scheme_params(p).mapping == QCTS_SYMMETRIC;
  ParameterTile<kBytes> scales, zeros;
  for_tiles(first, last, p.k / p.group, [&](const Tile& tile) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const int64_t n = tile.first_n + row, k = tile.first_group * p.group;
      quantize_plain_groups<Parts, kDtype>(static_cast<const char*>(p.x) + n * p.ldx_bytes + k * kBytes,
                                           p.ldx_bytes, tile.groups, p.group, symmetric, scales.at(row, 0),
                                           zeros.at(row, 0), qdata + (n * p.k + k) / 2);
    }
    store_tile(tile, &scales, p.n, out_plane(p, "scale"));
    store_tile(tile, &zeros, p.n, out_plane(p, "zero_point"));
  });
}

template <class Parts>
void quantize_int4_plain(const qcts_problem& p, int64_t first, int64_t last) {
  if (p.w_dtype == QCTS_F32) return quantize_plain_dtype<Parts, QCTS_F32>(p, first, last);
  if (p.w_dtype == QCTS_F16) return quantize_plain_dtype<Parts, QCTS_F16>(p, first, last);
  quantize_plain_dtype<Parts, QCTS_BF16>(p, first, last);
}

}  // namespace
}  // namespace qcts::avx2
