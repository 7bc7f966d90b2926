// SPDX-License-Identifier: BSD-3-Clause
// Parameters of int4 groups in the form that kernels/avx2/dequantize/int4_dequantize.h requires.
// The AVX-512 variants use them too.
#pragma once

#include "kernels/avx2/dequantize/int4_dequantize.h"

namespace qcts::avx2 {
namespace {

// The scale and the zero of a group are adjacent in memory.
template <uint32_t kOfDtype>
struct TinygemmParams {
  static constexpr uint32_t kDtype = kOfDtype;
  static constexpr bool kHighFirst = true, kPairs = kDtype == QCTS_BF16;
  static constexpr int kLower = -8, kUpper = 0, kBytes = kDtype == QCTS_F32 ? 8 : 4;

  explicit TinygemmParams(const qcts_problem& p) : plane(in_plane(p, "scale_and_zero")), n_count(p.n) {}
  void load(const Tile& tile) { load_tile(tile, plane, n_count, &pairs); }
  Lut16 table(int64_t row, int64_t g) const {
    return int4_table<true, kDtype>(one_element(kDtype, pairs.at(row, g), 0),
                                    one_element(kDtype, pairs.at(row, g), 1));
  }
  EightGroups eight(int64_t row, int64_t g) const {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs.at(row, g)));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(both, 16)),
            _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))))};
  }
  static uint32_t plain(const EightGroups& groups) { return plain_groups(groups); }

  const void* plane;
  int64_t n_count;
  ParameterTile<kBytes> pairs;
};

// Nibbles are signed.
template <uint32_t kOfDtype>
struct PlainParams {
  static constexpr uint32_t kDtype = kOfDtype;
  static constexpr bool kHighFirst = false, kPairs = kDtype == QCTS_BF16;
  static constexpr int kLower = 0, kUpper = -8, kBytes = kDtype == QCTS_F32 ? 4 : 2;

  explicit PlainParams(const qcts_problem& p)
      : scale_plane(in_plane(p, "scale")), zero_plane(in_plane(p, "zero_point")), n_count(p.n) {}
  void load(const Tile& tile) {
    load_tile(tile, scale_plane, n_count, &scales);
    load_tile(tile, zero_plane, n_count, &zeros);
  }
  Lut16 table(int64_t row, int64_t g) const {
    return int4_table<false, kDtype>(one_element(kDtype, scales.at(row, g), 0),
                                     one_element(kDtype, zeros.at(row, g), 0));
  }
  EightGroups eight(int64_t row, int64_t g) const {
    return {load8(kDtype, scales.at(row, g)), load8(kDtype, zeros.at(row, g))};
  }
  static uint32_t plain(const EightGroups& groups) { return plain_groups(groups); }

  const void *scale_plane, *zero_plane;
  int64_t n_count;
  ParameterTile<kBytes> scales, zeros;
};

// (code - zero_point) * scale has at most 19 bits, so float32 holds it exactly.
// The difference of code * scale and zero_point * scale is exact too. So nothing is rounded before the end.
template <uint32_t kOfDtype>
struct Int32Params {
  static constexpr uint32_t kDtype = kOfDtype;
  static constexpr bool kHighFirst = false, kPairs = kDtype == QCTS_BF16;
  static constexpr int kLower = 0, kUpper = 8, kBytes = kDtype == QCTS_F32 ? 4 : 2;

  explicit Int32Params(const qcts_problem& p)
      : scale_plane(in_plane(p, "scale")), zero_plane(in_plane(p, "zero_point")), n_count(p.n) {}
  void load(const Tile& tile) {
    load_tile(tile, scale_plane, n_count, &scales);
    load_tile(tile, zero_plane, n_count, &zero_points);
  }
  Lut16 table(int64_t row, int64_t g) const {
    const __m256 scale = _mm256_set1_ps(one_element(kDtype, scales.at(row, g), 0)),
                 zero = _mm256_set1_ps(static_cast<int8_t>(*zero_points.at(row, g)));
    const auto values = [&](__m256 codes) { return _mm256_mul_ps(_mm256_sub_ps(codes, zero), scale); };
    return lut16_of(kDtype, values(_mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7)),
                    values(_mm256_setr_ps(8, 9, 10, 11, 12, 13, 14, 15)));
  }
  EightGroups eight(int64_t row, int64_t g) const {
    const __m256 scale = load8(kDtype, scales.at(row, g));
    const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(zero_points.at(row, g)));
    const __m256 minus =
        _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_setzero_si256(), _mm256_cvtepi8_epi32(codes)));
    return {scale, _mm256_mul_ps(scale, minus)};
  }
  static uint32_t plain(const EightGroups& groups) {
    return static_cast<uint32_t>(
        _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(groups.scale, _mm256_set1_ps(0x1p-100f), _CMP_GT_OQ),
                                         _mm256_cmp_ps(groups.scale, _mm256_set1_ps(0x1p90f), _CMP_LT_OQ))));
  }

  const void *scale_plane, *zero_plane;
  int64_t n_count;
  ParameterTile<kBytes> scales;
  ParameterTile<1> zero_points;
};

}  // namespace
}  // namespace qcts::avx2
