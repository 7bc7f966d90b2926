// SPDX-License-Identifier: BSD-3-Clause
// Computes scales and codes of bfloat16 as nvfp4,
// for the AVX-512 variants of quantize and quantize_activation.
// 32 elements take 16 operations. kernels/avx2/quantize/nvfp4.h does the rest.
// kernels/avx2/quantize/e2m1_e2m3_encode.h explains why the sums of a magnitude are e2m1 codes.
#pragma once

#include "kernels/avx2/quantize/nvfp4.h"
#include "kernels/avx512/quantize.h"
#include "kernels/avx512/reduce.h"
#include "kernels/avx512/stores.h"

namespace qcts::avx512 {
namespace {

constexpr int64_t kNvfp4Bytes = 2 * avx2::kNvfp4Block;

// Returns the largest magnitudes of sixteen blocks. Two blocks fill a vector.
[[gnu::always_inline]] inline __m512 largest_of_blocks(const char* from) {
  __m512i of[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) of[i] = magnitudes(from + 64 * i);
  const __m512i quarters = max_of_quarters(of, UnsignedMax());
  const __m512i even = _mm512_setr_epi64(0, 1, 4, 5, 0, 1, 4, 5),
                odd = _mm512_setr_epi64(2, 3, 6, 7, 2, 3, 6, 7);
  const __m256i apart = _mm512_castsi512_si256(
      UnsignedMax()(_mm512_permutexvar_epi64(even, quarters), _mm512_permutexvar_epi64(odd, quarters)));
  const __m128i first = _mm256_castsi256_si128(apart), second = _mm256_extracti128_si256(apart, 1);
  const __m256i in_order =
      _mm256_set_m128i(_mm_unpackhi_epi16(first, second), _mm_unpacklo_epi16(first, second));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(in_order), 16));
}

// Computes the scales of blocks [g, g + 16), like avx2::choose_nvfp4.
[[gnu::always_inline]] inline void choose_nvfp4(__m512 largest, const float* whole, int64_t g,
                                                avx2::Nvfp4Scales* scales, uint8_t* bytes) {
  __m512 scale = _mm512_div_ps(largest, _mm512_set1_ps(6));
  float inverse = 1;
  if (whole != nullptr) {
    scale = _mm512_div_ps(scale, _mm512_set1_ps(*whole));
    inverse = 1 / *whole;
  }
  const __m512i bits =
      _mm512_castps_si512(_mm512_min_ps(_mm512_max_ps(scale, _mm512_set1_ps(0x1p-6f)), _mm512_set1_ps(448)));
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 20), _mm512_set1_epi32(1));
  const __m512i code = _mm512_srli_epi32(
      _mm512_add_epi32(_mm512_add_epi32(bits, last), _mm512_set1_epi32(0x7FFFF - (120 << 23))), 20);
  const __m512 stored =
      _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(code, _mm512_set1_epi32(120 << 3)), 20));
  const __m512 factor = _mm512_div_ps(_mm512_set1_ps(inverse), stored);
  const __mmask16 number = _mm512_cmp_ps_mask(scale, scale, _CMP_ORD_Q),
                  above = _mm512_cmp_ps_mask(factor, _mm512_setzero_ps(), _CMP_GT_OQ),
                  small =
                      _mm512_cmp_ps_mask(_mm512_mul_ps(largest, factor), _mm512_set1_ps(0x1p13f), _CMP_LT_OQ);
  const auto odd = static_cast<uint16_t>(~(number & above & small));
  _mm512_store_ps(scales->largest + g, largest);
  _mm512_store_ps(scales->factor + g, factor);
  std::memcpy(scales->odd + g / 8, &odd, 2);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + g), _mm512_cvtepi32_epi8(code));
}

// Constants of the encoder, kept in registers.
// Otherwise the compiler loads most of them again for every vector.
// Then these loads limit the speed, and codes take 1.2 times as long (EPYC Zen 5).
struct E2m1Constants {
  using Bits = avx2::TwoExponentBits<SmallFloat::e2m1>;
  __m512 far_less_2 = kept(_mm512_set1_ps(Bits::kFar - 2)), far = kept(_mm512_set1_ps(Bits::kFar)),
         half = kept(_mm512_set1_ps(0.5f));
  __m512i magnitude = kept(_mm512_set1_epi16(INT16_MAX)), odd = kept(_mm512_set1_epi32(0x7FFF0000)),
          max = kept(_mm512_set1_epi8(Bits::kAbove2 - 1)), above_2 = kept(_mm512_set1_epi8(Bits::kAbove2)),
          sign = kept(_mm512_set1_epi8(8)), pairs = kept(_mm512_set1_epi16(0x1001));
  __m512i two_blocks = kept(_mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1)),
          two = kept(_mm512_set1_epi32(2));
};

// Does the same as avx2::code_words for 32 elements.
[[gnu::always_inline]] inline __m512i e2m1_sums(const E2m1Constants& with, __m512i elements, __m512 factor) {
  const auto sum = [&](__m512i magnitude) {
    const __m512 v = _mm512_mul_ps(_mm512_castsi512_ps(magnitude), factor);
    const __m512 low = _mm512_add_ps(v, with.far_less_2), high = _mm512_fmadd_ps(v, with.half, with.far);
    return _mm512_min_epi32(_mm512_castps_si512(low), _mm512_castps_si512(high));
  };
  const __m512i even = _mm512_slli_epi32(_mm512_and_si512(elements, with.magnitude), 16),
                odd = _mm512_and_si512(elements, with.odd);
  return _mm512_mask_mov_epi16(sum(even), 0xAAAAAAAA, _mm512_slli_epi32(sum(odd), 16));
}

// Returns the codes of four blocks, two per byte.
// In turn, a word holds 8 codes of the first two blocks and 8 codes of the other two.
[[gnu::always_inline]] inline __m512i nvfp4_pairs(const E2m1Constants& with, const char* at, __m512 factors,
                                                  __m512i first) {
  const __m512i a = _mm512_loadu_si512(at), b = _mm512_loadu_si512(at + 64);
  const __m512i sums = _mm512_packs_epi16(
      e2m1_sums(with, a, _mm512_permutexvar_ps(first, factors)),
      e2m1_sums(with, b, _mm512_permutexvar_ps(_mm512_add_epi32(first, with.two), factors)));
  const __m512i codes = _mm512_add_epi8(_mm512_min_epi8(sums, with.max), with.above_2),
                signs = _mm512_srli_epi16(_mm512_packs_epi16(a, b), 4);
  const __m512i bytes = _mm512_ternarylogic_epi32(codes, signs, with.sign, 0xF8);  // a | (b & c)
  return _mm512_maddubs_epi16(bytes, with.pairs);
}

struct WideNvfp4 {
  template <uint32_t kDtype>
  [[gnu::always_inline]] static void scales(const float* whole, const char* from, int64_t count,
                                            avx2::Nvfp4Scales* scales, uint8_t* bytes) {
    int64_t g = 0;
    if constexpr (kDtype == QCTS_BF16) {
      for (; g + kLanes <= count; g += kLanes) {
        const __m512 largest = largest_of_blocks(from + g * kNvfp4Bytes);
        const __mmask16 nan = _mm512_cmp_ps_mask(largest, largest, _CMP_UNORD_Q);
        choose_nvfp4(_mm512_mask_mov_ps(largest, nan, _mm512_set1_ps(__builtin_nanf(""))), whole, g, scales,
                     bytes);
      }
    }
    avx2::nvfp4_scales<kDtype>(whole, from, g, count, scales, bytes);
  }

  template <uint32_t kDtype>
  [[gnu::always_inline]] static void codes(const avx2::Nvfp4Scales& scales, const char* from,
                                           int64_t next_bytes, int64_t count, bool past_caches,
                                           uint8_t* pairs) {
    if constexpr (kDtype == QCTS_BF16) {
      const bool streams = past_caches && is_line(pairs);
      const E2m1Constants with;
      const __m512i next_blocks =
          kept(_mm512_add_epi32(_mm512_add_epi32(with.two_blocks, with.two), with.two));
      for (int64_t g = 0; g < count; g += 8) {
        const char* at = from + g * kNvfp4Bytes;
        avx2::fetch_rows<8 * kNvfp4Bytes>(at, next_bytes);
        const __m512 factors = _mm512_castps256_ps512(_mm256_load_ps(scales.factor + g));
        const __m512i bytes =
            _mm512_packus_epi16(nvfp4_pairs(with, at, factors, with.two_blocks),
                                nvfp4_pairs(with, at + 4 * kNvfp4Bytes, factors, next_blocks));
        store64(pairs + g * avx2::kNvfp4Block / 2, in_order_of_packs(bytes), streams);
      }
    } else {
      avx2::nvfp4_codes<kDtype>(scales, from, next_bytes, count, past_caches, pairs);
    }
  }

  static float largest(uint32_t dtype, const char* elements, int64_t count) {
    return avx2::largest_from(dtype, largest_magnitude_bits(dtype, elements, count));
  }
};

}  // namespace
}  // namespace qcts::avx512
