// SPDX-License-Identifier: BSD-3-Clause
// Encodes a weight as NF4, for the AVX2 variant of quantize.
// A binary search of four steps looks up one of 15 bounds in each step.
// Floats are divided by their scaler and searched eight at a time. 16-bit elements are not divided.
// Instead, they are compared, as integers, with the bounds times the scaler.
// A block of 64 has one table of these bounds, and 16 elements take 16 operations.
#pragma once

#include "kernels/avx2/quantize.h"
#include "kernels/avx2/stores.h"
#include "kernels/families/nf4_blocks.h"

namespace qcts::avx2 {
namespace {

// The last step selects one of the bounds 0, 2 .. 14, in order.
// The earlier steps select one of 1, 3 .. 13: place 3, then place 1 or 5,
// then place 0, 2, 4 or 6. The bits of a place stay where the first step puts them.
struct Nf4Floats {
  __m256 odd, even;
};

[[maybe_unused]] Nf4Floats nf4_floats(const float* bounds) {
  return {_mm256_setr_ps(bounds[1], bounds[3], bounds[5], bounds[7], bounds[9], bounds[11], bounds[13], 0),
          _mm256_setr_ps(bounds[0], bounds[2], bounds[4], bounds[6], bounds[8], bounds[10], bounds[12],
                         bounds[14])};
}

// Returns the codes of eight quotients as int32.
[[gnu::always_inline]] inline __m256i nf4_codes8(const Nf4Floats& bounds, __m256 quotient) {
  const auto not_below = [&](__m256 table, __m256i place) {
    return _mm256_castps_si256(_mm256_cmp_ps(quotient, _mm256_permutevar8x32_ps(table, place), _CMP_GE_OQ));
  };
  const auto bit_of = [](__m256i upper, int bit) { return _mm256_and_si256(upper, _mm256_set1_epi32(bit)); };
  __m256i place = bit_of(not_below(bounds.odd, _mm256_set1_epi32(3)), 4);
  place =
      _mm256_or_si256(place, bit_of(not_below(bounds.odd, _mm256_or_si256(place, _mm256_set1_epi32(1))), 2));
  place = _mm256_or_si256(place, bit_of(not_below(bounds.odd, place), 1));
  return _mm256_sub_epi32(_mm256_add_epi32(place, place), not_below(bounds.even, place));
}

// A bound of a narrow dtype with p bits lies where quotients begin to round up:
// at a tie, or at the float after a tie.
// The quotient of an x and a scaler of p bits is never a tie, and it is at least 2^-23 away from one.
// The reason is that a tie has p + 1 bits, and so has its product with any scaler.
// So x can be compared with tie * scaler, which is exact.
// The result is the same as if the rounded quotient were compared with the bound.
[[maybe_unused]] float nf4_tie(float bound) {
  const auto bits = __builtin_bit_cast(uint32_t, bound);
  const bool after = (bits & 1) != 0;
  return __builtin_bit_cast(float, !after ? bits : bound < 0 ? bits + 1 : bits - 1);
}
[[maybe_unused]] Nf4Floats nf4_ties(const float* bounds) {
  float ties[15];
  for (int i = 0; i < 15; ++i) ties[i] = nf4_tie(bounds[i]);
  return nf4_floats(ties);
}

// Maps the bits of floats to integers of the same order.
[[gnu::always_inline]] inline __m256i in_order16(__m256i bits) {
  return _mm256_sign_epi16(_mm256_and_si256(bits, _mm256_set1_epi16(0x7FFF)), bits);
}
[[gnu::always_inline]] inline __m256i in_order32(__m256i bits) {
  return _mm256_sign_epi32(_mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFFFF)), bits);
}

// Returns the largest element below each bound of a block. The odd bounds come first.
template <uint32_t kDtype>
[[gnu::always_inline]] inline __m256i nf4_words(const Nf4Floats& ties, float scaler) {
  const __m256 factor = _mm256_set1_ps(scaler);
  const __m256 odd = _mm256_mul_ps(ties.odd, factor), even = _mm256_mul_ps(ties.even, factor);
  if (kDtype == QCTS_F16) {
    constexpr int kDown = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
    return in_order16(_mm256_set_m128i(_mm256_cvtps_ph(even, kDown), _mm256_cvtps_ph(odd, kDown)));
  }
  const auto down = [](__m256 product) {
    return _mm256_srai_epi32(in_order32(_mm256_castps_si256(product)), 16);
  };
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(down(odd), down(even)), 0xD8);
}

// Both halves hold the same words.
struct Nf4Words {
  __m256i odd, even;
};

// Returns the codes of 16 elements, each in the low byte of its word.
// A place is kept as two indices into the table, one for each byte of a word.
[[gnu::always_inline]] inline __m256i nf4_codes16(const Nf4Words& bounds, __m256i x) {
  const __m256i value = in_order16(x);
  const auto above = [&](__m256i table, __m256i bytes) {
    return _mm256_cmpgt_epi16(value, _mm256_shuffle_epi8(table, bytes));
  };
  const auto bit_of = [](__m256i upper, int16_t bit) {
    return _mm256_and_si256(upper, _mm256_set1_epi16(bit));
  };
  __m256i place = _mm256_or_si256(bit_of(above(bounds.odd, _mm256_set1_epi16(0x0706)), 0x0808),
                                  _mm256_set1_epi16(0x0100));
  place = _mm256_or_si256(place, bit_of(above(_mm256_bsrli_epi128(bounds.odd, 2), place), 0x0404));
  place = _mm256_or_si256(place, bit_of(above(bounds.odd, place), 0x0202));
  return _mm256_sub_epi16(place, above(bounds.even, place));
}

// Returns the largest magnitude of 64 elements of a 16-bit dtype, as bits.
[[gnu::always_inline]] inline uint32_t largest_bits(__m256i a, __m256i b, __m256i c, __m256i d) {
  const auto magnitude = [](__m256i x) { return _mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)); };
  const __m256i max = _mm256_max_epu16(_mm256_max_epu16(magnitude(a), magnitude(b)),
                                       _mm256_max_epu16(magnitude(c), magnitude(d)));
  const __m128i half = _mm_max_epu16(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
  const __m128i min = _mm_minpos_epu16(_mm_xor_si128(half, _mm_set1_epi16(-1)));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(min) & 0xFFFF) ^ 0xFFFF;
}

// Packs the low bytes of 64 words, two per byte. The even one is in the high nibble.
[[gnu::always_inline]] inline void store_nf4_pairs(__m256i a, __m256i b, __m256i c, __m256i d,
                                                   bool past_caches, uint8_t* pairs) {
  const auto joined = [](__m256i x) {
    return _mm256_and_si256(_mm256_madd_epi16(x, _mm256_set1_epi32(0x00010010)), _mm256_set1_epi32(0xFF));
  };
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_packs_epi32(joined(a), joined(b)), _mm256_packs_epi32(joined(c), joined(d)));
  store32(pairs, _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)), past_caches);
}

}  // namespace
}  // namespace qcts::avx2
