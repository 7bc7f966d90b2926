// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes blocks of NVFP4, for the AVX2 variants.
// The kernel reads half a byte and writes two or four bytes per element.
// The kernel rounds like dequantize/nvfp4_scalar.cc.
// A table of 16 values for every 16 elements would cost 3 operations per element.
// But in bfloat16, the values of a block have only two fractions:
// the fraction of the scale and the fraction of 1.5 times the scale.
// These fractions are computed for eight blocks together, and exponents are added.
// The tables of two blocks cost 16 operations, and looking up 32 codes costs 12.
#pragma once

#include "kernels/avx2/float8.h"
#include "kernels/avx2/lut16.h"

namespace qcts::avx2 {
namespace {

alignas(32) constexpr float kE2m1[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                         -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

struct Nvfp4Planes {
  const uint8_t *pairs, *scales;
  float whole;  // scale of the whole weight; 1 if the scheme has one level
};

// Converts two blocks. `both` holds (scale) and (1.5 * scale) of each block in bfloat16.
// The codes 1 .. 7 mean 0.5, 1, 1.5, 2, 3, 4 and 6.
// So each value is one of these two numbers, moved by -1 to 2 binades.
[[gnu::always_inline]] inline void dequantize_nvfp4_pair(const char* both, const uint8_t* pairs,
                                                         bool past_caches, char* to) {
  const __m256i fractions = _mm256_setr_epi8(-1, -1, 0, 1, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, -1, -1, 4, 5,
                                             4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7);
  const __m256i exponents =
      _mm256_setr_epi16(0, -128, 0, 0, 128, 128, 256, 256, 0, -128, 0, 0, 128, 128, 256, 256);
  const __m256i even = _mm256_set1_epi64x(0x0E0C0A0806040200), odd = _mm256_set1_epi64x(0x0F0D0B0907050301);
  const __m256i negative = _mm256_setr_epi64x(0, static_cast<int64_t>(0x8080808080808080u), 0,
                                              static_cast<int64_t>(0x8080808080808080u));
  int64_t bits;
  std::memcpy(&bits, both, 8);
  const __m256i values =
      _mm256_add_epi16(_mm256_shuffle_epi8(_mm256_set1_epi64x(bits), fractions), exponents);
  const __m256i low = _mm256_shuffle_epi8(values, even),
                high = _mm256_or_si256(_mm256_shuffle_epi8(values, odd), negative);
  const __m256i words = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pairs)));
  const __m256i codes =
      _mm256_and_si256(_mm256_or_si256(words, _mm256_slli_epi16(words, 4)), _mm256_set1_epi8(15));
  const __m256i lows = _mm256_shuffle_epi8(low, codes), highs = _mm256_shuffle_epi8(high, codes);
  const __m256i front = _mm256_unpacklo_epi8(lows, highs), back = _mm256_unpackhi_epi8(lows, highs);
  store32(to, _mm256_permute2x128_si256(front, back, 0x20), past_caches);
  store32(to + 32, _mm256_permute2x128_si256(front, back, 0x31), past_caches);
}

// Converts eight blocks to bfloat16 whose scales are in [2^-100, 2^100].
// The AVX-512 variant replaces this step.
struct Nvfp4Fractions {
  static void dequantize_eight(__m256 scale, const uint8_t* pairs, bool past_caches, char* to) {
    const __m256i three_halves = round_to_upper(_mm256_mul_ps(scale, _mm256_set1_ps(1.5f)));
    alignas(32) char fractions[32];
    _mm256_store_si256(reinterpret_cast<__m256i*>(fractions),
                       _mm256_blend_epi16(_mm256_srli_epi32(round_to_upper(scale), 16), three_halves, 0xAA));
    for (int64_t i = 0; i < 8; i += 2)
      dequantize_nvfp4_pair(fractions + 4 * i, pairs + 8 * i, past_caches, to + 32 * i);
  }
};

// Converts `count` blocks, at most eight.
template <class Blocks>
void dequantize_nvfp4_blocks(const Nvfp4Planes& from, uint32_t dtype, int64_t block, int64_t count,
                             bool past_caches, char* to) {
  uint8_t codes[8] = {};
  const bool all = count == 8;
  if (!all) std::memcpy(codes, from.scales + block, static_cast<size_t>(count));
  const __m256 scale =
      _mm256_mul_ps(_mm256_set1_ps(from.whole), small_float<Float8::e4m3>(all ? from.scales + block : codes));
  // All products are normal numbers, and no zero is -0.
  const __m256 plain = _mm256_and_ps(_mm256_cmp_ps(scale, _mm256_set1_ps(0x1p-100f), _CMP_GE_OQ),
                                     _mm256_cmp_ps(scale, _mm256_set1_ps(0x1p100f), _CMP_LE_OQ));
  if (dtype == QCTS_BF16 && all && _mm256_movemask_ps(plain) == 0xFF)
    return Blocks::dequantize_eight(scale, from.pairs + 8 * block, past_caches, to);
  float scales[8];
  _mm256_storeu_ps(scales, scale);
  for (int64_t i = 0; i < count; ++i)
    look_up_codes<false>(dtype, lut16_of_products(dtype, kE2m1, scales[i]), from.pairs + 8 * (block + i), 16,
                         to + 16 * i * (dtype == QCTS_F32 ? 4 : 2));
}

template <class Blocks>
void dequantize_nvfp4(const qcts_problem& p, int64_t first, int64_t last) {
  const void* whole = in_plane(p, "per_tensor_scale");
  const Nvfp4Planes from = {static_cast<const uint8_t*>(in_plane(p, "qdata")),
                            static_cast<const uint8_t*>(in_plane(p, "scale")),
                            whole == nullptr ? 1.0f : one_element(QCTS_F32, whole, 0)};
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2, blocks = p.k / 16;
  const bool past_caches = is_past_caches(p, 16);
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t block = 0; block < blocks; block += 8)
      dequantize_nvfp4_blocks<Blocks>(from, p.w_dtype, n * blocks + block,
                                      blocks - block < 8 ? blocks - block : 8, past_caches,
                                      row + block * 16 * bytes);
  }
}

}  // namespace
}  // namespace qcts::avx2
