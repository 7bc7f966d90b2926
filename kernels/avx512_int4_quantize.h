// Ranges and bfloat16's codes of int4 groups for the AVX-512 variant of quantize, and for nothing else: every
// function has internal linkage. The rest is kernels/avx2_int4_quantize.h. Even and odd elements are widened
// apart, which takes one operation each and leaves the two codes of a byte in the same 32 bits: 64 elements
// cost 43 operations, where the AVX2 variant spends 81.
#pragma once

#include "kernels/avx2_int4_quantize.h"
#include "kernels/avx512.h"

namespace qcts::avx512 {
namespace {

struct TameInt4 {
  __m512 low, reciprocal, reciprocal_65537;
};

// avx2::bf16_rounded and avx2::bf16_rounded_product say why these round to bfloat16; steps are at most 16.
[[gnu::always_inline]] inline __m512i tame_steps(__m512i words, const TameInt4& by) {
  const __m512 above = _mm512_sub_ps(_mm512_castsi512_ps(words), by.low);
  const __m512 v = _mm512_fmsub_ps(above, _mm512_set1_ps(65536), _mm512_mul_ps(above, _mm512_set1_ps(65535)));
  const __m512 far = _mm512_mul_ps(v, by.reciprocal_65537);
  return _mm512_cvtps_epi32(_mm512_sub_ps(_mm512_fmadd_ps(v, by.reciprocal, far), far));
}

// Codes of 32 elements: in each 128 bits four even ones, then four odd ones, 16 bits each.
[[gnu::always_inline]] inline __m512i tame_words(const char* at, const TameInt4& by) {
  const __m512i both = _mm512_loadu_si512(at);
  const __m512i even = _mm512_slli_epi32(both, 16),
                odd = _mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u)));
  return _mm512_packs_epi32(tame_steps(even, by), tame_steps(odd, by));
}

// 64 elements, an even code in the high nibble. After the second pack 64 bits hold four even codes, then
// four odd ones, and every other 64 bits are of the second half.
[[gnu::always_inline]] inline __m256i tame_pairs(const char* at, const TameInt4& by) {
  const __m512i bytes =
      _mm512_min_epu8(_mm512_packus_epi16(tame_words(at, by), tame_words(at + 64, by)), _mm512_set1_epi8(15));
  const __m512i pairs = _mm512_or_si512(_mm512_slli_epi64(bytes, 4), _mm512_srli_epi64(bytes, 32));
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
  return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, pairs));
}

struct Int4Parts {
  static void narrow_range(const char* at, int64_t count, uint16_t* least, uint16_t* most) {
    if (count % 32 != 0) return avx2::narrow_range(at, count, least, most);
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
                             halves(bottom, [](__m256i a, __m256i b) { return _mm256_max_epu16(a, b); }),
                             least, most))
      avx2::narrow_range(at, count, least, most);
  }

  static void quantize_tame_group(const char* at, int64_t row_bytes, int64_t count, float low,
                                  float reciprocal, uint8_t* out) {
    const TameInt4 by = {_mm512_set1_ps(low), _mm512_set1_ps(reciprocal), _mm512_set1_ps(reciprocal * 65537)};
    int64_t i = 0;
    for (; i + 64 <= count; i += 64) {
      avx2::fetch_rows<128>(at + 2 * i, row_bytes);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i / 2), tame_pairs(at + 2 * i, by));
    }
    if (i < count)
      avx2::Int4Parts::quantize_tame_group(at + 2 * i, row_bytes, count - i, low, reciprocal, out + i / 2);
  }
};

}  // namespace
}  // namespace qcts::avx512
