// SPDX-License-Identifier: BSD-3-Clause
// Finds ranges of int4 groups and encodes bfloat16, for the AVX-512 variant of quantize.
// kernels/avx2/quantize/int4_quantize.h does the rest.
//
// Both roundings of a code are monotone in x. So 15 thresholds define the codes of a group.
// The thresholds are found exactly, in a dozen operations.
// One multiplication selects the threshold of an element and need not be precise.
// A lookup and a comparison of 16-bit integers decide. 64 elements cost 21 operations.
// Rounding twice would cost 43 and take 1.10 to 1.17 times as long (EPYC Zen 4, 4096 x 4096, one thread).
#pragma once

#include "kernels/avx2/quantize/int4_quantize.h"
#include "kernels/avx512/elements.h"

namespace qcts::avx512 {
namespace {

struct NearInt4 {
  __m512 reciprocal, offset;  // (x * reciprocal + offset) is (65536 * (x - low) / scale + 65536 + 2^23)
  // min[i] is the smallest element of code i, as ordered() returns it;
  // min[0] is below all elements, min[16] above all
  __m512i min;
};

// Maps 16-bit floats to signed integers in the same order. -0 comes just before 0.
[[gnu::always_inline]] inline __m512i ordered(__m512i words) {
  return _mm512_ternarylogic_epi32(words, _mm512_srai_epi16(words, 15), _mm512_set1_epi16(INT16_MAX), 0x78);
}

// A quotient v / scale is rounded to an integer, ties to even.
// So code i begins at i - 1/2 if i is even, and just above it if i is odd.
// At that point, the exact quotient passes one of `middles`.
// No v / scale equals one of them, because scale * middle has 17 bits.
// The smallest v of code i is the next 8-bit number above scale * middle.
// Let h be halfway between that v and the number before it.
// Everything above h is rounded to v; h itself is rounded to v only if v is even.
// The smallest x whose distance from low is that large is found by rounding up.
[[gnu::always_inline]] inline __m512i min_of_codes(__m512 low, __m512 scale) {
  const __m512 middles =
      _mm512_setr_ps(-65536, 0.5f + 0x1p-9f, 1.5f - 0x1p-8f, 2.5f + 0x1p-7f, 3.5f - 0x1p-7f, 4.5f + 0x1p-6f,
                     5.5f - 0x1p-6f, 6.5f + 0x1p-6f, 7.5f - 0x1p-6f, 8.5f + 0x1p-5f, 9.5f - 0x1p-5f,
                     10.5f + 0x1p-5f, 11.5f - 0x1p-5f, 12.5f + 0x1p-5f, 13.5f - 0x1p-5f, 14.5f + 0x1p-5f);
  const __m512i quotient = _mm512_castps_si512(_mm512_mul_ps(scale, middles));
  const __mmask16 odd = _mm512_testn_epi32_mask(quotient, _mm512_set1_epi32(0x10000));
  __m512i above = _mm512_ternarylogic_epi32(quotient, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)),
                                            _mm512_set1_epi32(0x8000), 0xEA);  // and, or
  above = _mm512_mask_add_epi32(above, odd, above, _mm512_set1_epi32(1));
  const __m512i x = _mm512_castps_si512(
      _mm512_add_round_ps(_mm512_castsi512_ps(above), low, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC));
  // Shortens to 16 bits in the order of ordered(). A positive number gets the carry added.
  // Zero and negative numbers become their inverted magnitude.
  const __m512i inverted = _mm512_ternarylogic_epi32(x, x, _mm512_set1_epi32(INT32_MAX), 0x77);  // not and
  const __m512i upper = _mm512_mask_add_epi32(inverted, _mm512_cmpgt_epi32_mask(x, _mm512_setzero_si512()), x,
                                              _mm512_set1_epi32(0xFFFF));
  const __m512i order = _mm512_set_epi16(32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 32, 31,
                                         29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi16(upper, order, _mm512_set1_epi16(INT16_MAX));
}

// Returns the codes of 32 elements, 16 bits each.
// The third byte of a sum is i if (x - low) / scale is between i - 1 and i.
// The code is i if x is at least the smallest element of code i, and otherwise i - 1.
// Thresholds are within 0.07 of i - 1/2, so a sum may be off by 0.4.
// The sum of an odd element still has the even element below it, which adds at most 0.31 at 40 scales.
[[gnu::always_inline]] inline __m512i near_words(const char* at, const NearInt4& by) {
  const __m512i both = _mm512_loadu_si512(at);
  const __m512 even = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)), odd = _mm512_castsi512_ps(both);
  const __m512i even_sum = _mm512_castps_si512(_mm512_fmadd_ps(even, by.reciprocal, by.offset)),
                odd_sum = _mm512_castps_si512(_mm512_fmadd_ps(odd, by.reciprocal, by.offset));
  const __m512i third_bytes =
      _mm512_broadcast_i32x4(_mm_setr_epi8(2, -1, 0, -1, 6, -1, 0, -1, 10, -1, 0, -1, 14, -1, 0, -1));
  const __m512i guess = _mm512_mask_shuffle_epi8(odd_sum, 0xBBBBBBBBBBBBBBBB, even_sum, third_bytes);
  const __mmask32 below = _mm512_cmplt_epi16_mask(ordered(both), _mm512_permutexvar_epi16(guess, by.min));
  return _mm512_mask_sub_epi16(guess, below, guess, _mm512_set1_epi16(1));
}

// Returns the codes of 64 elements, two in every 16 bits. The even code is in the high nibble.
[[gnu::always_inline]] inline __m512i near_pairs(const char* at, const NearInt4& by) {
  return _mm512_maddubs_epi16(_mm512_packus_epi16(near_words(at, by), near_words(at + 64, by)),
                              _mm512_set1_epi16(0x0110));
}

// Returns the bytes of near_pairs in order.
// After packing twice, each 128 bits hold four bytes of each 32 elements.
[[gnu::always_inline]] inline __m512i join_pairs(__m512i a, __m512i b) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(a, b));
}

[[gnu::always_inline]] inline void quantize_near_group(const char* at, int64_t row_bytes, int64_t count,
                                                       const NearInt4& by, uint8_t* out) {
  int64_t i = 0;
  for (; i + 128 <= count; i += 128) {
    avx2::fetch_rows<256>(at + 2 * i, row_bytes);
    _mm512_storeu_si512(out + i / 2,
                        join_pairs(near_pairs(at + 2 * i, by), near_pairs(at + 2 * i + 128, by)));
  }
  if (i == count) return;
  avx2::fetch_rows<128>(at + 2 * i, row_bytes);
  const __m512i pairs = near_pairs(at + 2 * i, by);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 2),
                      _mm512_castsi512_si256(join_pairs(pairs, pairs)));
}

struct Int4Parts {
  static void narrow_range(const char* at, int64_t count, uint16_t* min, uint16_t* max) {
    if (count % 32 != 0) return avx2::narrow_range(at, count, min, max);
    __m512i top = _mm512_loadu_si512(at), bottom = top;
    for (int64_t i = 32; i < count; i += 32) {
      const __m512i words = _mm512_loadu_si512(at + 2 * i);
      top = _mm512_max_epi16(top, words);
      bottom = _mm512_max_epu16(bottom, words);
    }
    const auto halves = [](__m512i all, auto larger) {
      return larger(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    };
    if (!avx2::range_of_ends(halves(top, [](__m256i a, __m256i b) { return _mm256_max_epi16(a, b); }),
                             halves(bottom, [](__m256i a, __m256i b) { return _mm256_max_epu16(a, b); }), min,
                             max))
      avx2::narrow_range(at, count, min, max);
  }

  // Returns a bit for each group whose low is less than 24 scales from zero.
  // Every group with both signs gets the bit. No x of a group with the bit is 40 scales from zero.
  static uint32_t near_groups(const avx2::Int4Groups& groups) {
    uint32_t near = 0;
    for (int g = 0; g < avx2::kTileGroups; g += kLanes) {
      const __m512 low = _mm512_loadu_ps(groups.low + g), reciprocal = _mm512_loadu_ps(groups.reciprocal + g);
      near |= static_cast<uint32_t>(_mm512_cmp_ps_mask(_mm512_abs_ps(_mm512_mul_ps(low, reciprocal)),
                                                       _mm512_set1_ps(24), _CMP_LT_OQ))
              << g;
    }
    return near;
  }

  static uint32_t quantize_groups(const char* at, int64_t row_bytes, int64_t group, uint32_t ordinary,
                                  const avx2::Int4Groups& groups, uint8_t* out) {
    if (group % 64 != 0) return 0;
    const uint32_t near = ordinary & near_groups(groups);
    for (uint32_t left = near; left != 0; left &= left - 1) {
      const int g = __builtin_ctz(left);
      const __m512 low = _mm512_set1_ps(groups.low[g]),
                   reciprocal = _mm512_set1_ps(groups.reciprocal[g] * 65536);
      const NearInt4 by = {reciprocal, _mm512_fnmadd_ps(low, reciprocal, _mm512_set1_ps(0x1p23f + 65536)),
                           min_of_codes(low, _mm512_set1_ps(groups.scale[g]))};
      quantize_near_group(at + 2 * g * group, row_bytes, group, by, out + g * group / 2);
    }
    return near;
  }
};

}  // namespace
}  // namespace qcts::avx512
