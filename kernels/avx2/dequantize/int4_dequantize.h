// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes rows of int4 groups, for the AVX2 variants.
// The 16 values of a group are computed and rounded once, and then looked up.
// For groups of 32 and 64 elements in bfloat16, computing the tables limits the speed.
// So two tables are made at a time, one in each half of the registers.
// Both tables together cost 23 operations, and looking up 64 codes costs as many.
//
// With groups of 32, a row of a tile has 512 bytes of codes.
// The row ends before a hardware prefetcher starts. So the codes of the next row are prefetched early.
// The parameters of a tile are prefetched during the rows above the tile.
#pragma once

#include "kernels/avx2/dequantize/int4_table.h"
#include "kernels/avx2/group_params.h"

namespace qcts::avx2 {
namespace {

// The values of the codes of two groups, as bytes of bfloat16. The first group is in the lower halves.
struct TablePair {
  __m256i low, high;
};

// Eight groups whose values are code * scale + zero.
struct EightGroups {
  __m256 scale, zero;
};

// Returns a bit for each group whose values bf16_rounded may round.
// For such a group, is_plain_sum holds, so its values are exact or far from a tie in float32.
// No scale produces -0.
[[gnu::always_inline]] inline uint32_t plain_groups(const EightGroups& groups) {
  const auto exponents = [](__m256 value) {
    return _mm256_srli_epi32(_mm256_slli_epi32(_mm256_castps_si256(value), 1), 24);
  };
  const __m256 zero = _mm256_setzero_ps();
  const __m256i apart = _mm256_sub_epi32(exponents(groups.scale), exponents(groups.zero));
  const __m256i near = _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(10), apart),
                                        _mm256_cmpgt_epi32(apart, _mm256_set1_epi32(-13)));
  const __m256 alone = _mm256_cmp_ps(groups.zero, zero, _CMP_EQ_OQ);
  const __m256 size = _mm256_max_ps(groups.scale, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), groups.zero));
  const __m256 ordinary = _mm256_and_ps(_mm256_cmp_ps(size, _mm256_set1_ps(0x1p100f), _CMP_LT_OQ),
                                        _mm256_cmp_ps(groups.scale, zero, _CMP_GT_OQ));
  return static_cast<uint32_t>(
      _mm256_movemask_ps(_mm256_and_ps(ordinary, _mm256_or_ps(_mm256_castsi256_ps(near), alone))));
}

// Returns the values of two groups.
// Nibbles 0 to 7 mean kLower to kLower + 7, and nibbles 8 to 15 mean kUpper to kUpper + 7.
template <int kLower, int kUpper>
[[gnu::always_inline]] inline TablePair bf16_table_pair(const float* scales, const float* zeros) {
  const auto both = [](const float* two) {
    double bits;
    std::memcpy(&bits, two, 8);
    return _mm256_permutevar8x32_ps(_mm256_castpd_ps(_mm256_set1_pd(bits)),
                                    _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
  };
  const __m256 scale = both(scales), zero = both(zeros);
  // Returns the values of eight codes, starting at `first`: their low bytes, then their high bytes.
  const auto eight = [&](float first) {
    const __m256 even = _mm256_add_ps(_mm256_set1_ps(first), _mm256_setr_ps(0, 2, 4, 6, 0, 2, 4, 6)),
                 odd = _mm256_add_ps(_mm256_set1_ps(first), _mm256_setr_ps(1, 3, 5, 7, 1, 3, 5, 7));
    const auto rounded = [&](__m256 codes) {
      return _mm256_castps_si256(bf16_rounded(_mm256_fmadd_ps(codes, scale, zero)));
    };
    const __m256i words = _mm256_blend_epi16(_mm256_srli_epi32(rounded(even), 16), rounded(odd), 0xAA);
    return _mm256_shuffle_epi8(words, _mm256_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15,
                                                       0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
  };
  const __m256i lower = eight(kLower), upper = eight(kUpper);
  return {_mm256_unpacklo_epi64(lower, upper), _mm256_unpackhi_epi64(lower, upper)};
}

// Looks up the codes of two consecutive groups of kGroup elements.
template <bool kHighFirst, int64_t kGroup, bool kPastCaches>
[[gnu::always_inline]] inline void look_up_pair(const TablePair& table, const uint8_t* codes, char* to) {
  const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 2
  for (int64_t k = 0; k < kGroup; k += 32) {
    const auto* first = reinterpret_cast<const __m128i*>(codes + k / 2);
    const __m256i pairs = kGroup == 32
                              ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first))
                              : _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(first)),
                                                        _mm_loadu_si128(first + kGroup / 32), 1);
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(pairs, 4), nibble),
                  lower = _mm256_and_si256(pairs, nibble);
    const __m256i even = kHighFirst ? upper : lower, odd = kHighFirst ? lower : upper;
    const auto sixteen = [&](__m256i some, int64_t at) {
      const __m256i low = _mm256_shuffle_epi8(table.low, some), high = _mm256_shuffle_epi8(table.high, some);
      const __m256i front = _mm256_unpacklo_epi8(low, high), back = _mm256_unpackhi_epi8(low, high);
      store32(to + 2 * at, _mm256_permute2x128_si256(front, back, 0x20), kPastCaches);
      store32(to + 2 * (kGroup + at), _mm256_permute2x128_si256(front, back, 0x31), kPastCaches);
    };
    sixteen(_mm256_unpacklo_epi8(even, odd), k);
    sixteen(_mm256_unpackhi_epi8(even, odd), k + 16);
  }
}

// Converts `groups` groups of kGroup elements in one row of a tile. Params is described below.
template <class Params, int64_t kGroup, bool kPastCaches>
void dequantize_short_groups(const Params& params, int64_t row, int64_t groups, int64_t row_bytes,
                             const uint8_t* codes, char* to) {
  alignas(32) float scales[kLanes], zeros[kLanes];
  for (int64_t first = 0; first < groups; first += kLanes) {
    const EightGroups eight = params.eight(row, first);
    _mm256_store_ps(scales, eight.scale);
    _mm256_store_ps(zeros, eight.zero);
    const uint32_t plain = params.plain(eight);
    const int64_t count = groups - first < kLanes ? groups - first : kLanes;
    for (int64_t g = 0; g < count; g += 2, codes += kGroup, to += 4 * kGroup) {
      _mm_prefetch(reinterpret_cast<const char*>(codes + row_bytes), _MM_HINT_T0);
      if (g + 1 < count && (plain >> g & 3) == 3) {
        look_up_pair<Params::kHighFirst, kGroup, kPastCaches>(
            bf16_table_pair<Params::kLower, Params::kUpper>(scales + g, zeros + g), codes, to);
        continue;
      }
      for (int64_t i = 0; i < 2 && g + i < count; ++i)
        look_up_codes<Params::kHighFirst, false>(params.table(row, first + g + i), codes + i * kGroup / 2,
                                                 kGroup, to + 2 * i * kGroup, kPastCaches);
    }
  }
}

template <class Params>
void dequantize_long_groups(const Params& params, int64_t row, int64_t groups, int64_t group,
                            int64_t row_bytes, const uint8_t* codes, bool past_caches, char* to) {
  constexpr bool kWide = Params::kDtype == QCTS_F32;
  for (int64_t g = 0; g < groups; ++g, codes += group / 2, to += group * (kWide ? 4 : 2)) {
    for (int64_t line = 0; line < group / 2; line += 64)
      _mm_prefetch(reinterpret_cast<const char*>(codes + row_bytes + line), _MM_HINT_T0);
    look_up_codes<Params::kHighFirst, kWide>(params.table(row, g), codes, group, to, past_caches);
  }
}

// Converts rows of a tile to bfloat16 with byte shuffles. Returns true if it converted the row.
struct ByteShuffles {
  template <class Params>
  static bool dequantize_row(const Params& params, int64_t row, int64_t groups, int64_t group,
                             int64_t row_bytes, const uint8_t* codes, bool past_caches, char* to) {
    if (group != 32 && group != 64) return false;
    const auto dequantize = group == 32   ? past_caches ? dequantize_short_groups<Params, 32, true>
                                                        : dequantize_short_groups<Params, 32, false>
                              : past_caches ? dequantize_short_groups<Params, 64, true>
                                          : dequantize_short_groups<Params, 64, false>;
    dequantize(params, row, groups, row_bytes, codes, to);
    return true;
  }
};

// Params holds the parameters of a tile and has these members:
//   kDtype, kHighFirst   the weight's dtype; true if the even code has the high nibble
//   load(tile)           loads the parameters
//   table(row, g)        returns the values of one group
//   kPairs               true if the value is code * scale + zero in bfloat16; the rest exists only then
//   kLower, kUpper       meaning of nibbles 0 and 8
//   eight(row, g)        groups g to g + 7; g is a multiple of 8; groups beyond the end may hold anything
//   plain(eight)         a bit for each group that bf16_table_pair may compute
//
// If kPairs is true, Pairs::dequantize_row is tried first.
// dequantize_row has the parameters (params, row, groups, group, row_bytes, codes, past_caches, to).
template <class Params, class Pairs>
void dequantize_int4_rows(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int64_t kBytes = Params::kDtype == QCTS_F32 ? 4 : 2;
  const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const bool past_caches = is_past_caches(p, p.group);
  Params params(p);
  for_tiles(first, last, p.k / p.group, [&](const Tile& tile) {
    params.load(tile);
    const int64_t k = tile.first_group * p.group;
    for (int64_t row = 0; row < tile.rows; ++row) {
      const int64_t n = tile.first_n + row;
      const uint8_t* codes = qdata + (n * p.k + k) / 2;
      char* to = static_cast<char*>(p.y) + n * p.ldy_bytes + k * kBytes;
      if constexpr (Params::kPairs) {
        if (Pairs::dequantize_row(params, row, tile.groups, p.group, p.k / 2, codes, past_caches, to))
          continue;
      }
      dequantize_long_groups(params, row, tile.groups, p.group, p.k / 2, codes, past_caches, to);
    }
  });
  _mm_sfence();
}

// Calls dequantize_int4_rows with Params of the weight's dtype.
template <template <uint32_t> class Params, class Pairs>
void dequantize_int4(const qcts_problem& p, int64_t first, int64_t last) {
  if (p.w_dtype == QCTS_F32) return dequantize_int4_rows<Params<QCTS_F32>, Pairs>(p, first, last);
  if (p.w_dtype == QCTS_F16) return dequantize_int4_rows<Params<QCTS_F16>, Pairs>(p, first, last);
  dequantize_int4_rows<Params<QCTS_BF16>, Pairs>(p, first, last);
}

}  // namespace
}  // namespace qcts::avx2
