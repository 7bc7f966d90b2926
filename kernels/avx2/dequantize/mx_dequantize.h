// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes blocks of mx, for the AVX2 variants. Rounds like dequantize/mx_scalar.cc.
//
// For MXFP4, the 16 values of a block are computed once and looked up.
// In bfloat16, the table costs six operations per block, and the lookup 0.3 per element.
// To convert MXFP8 to bfloat16, a normal code is moved to its place and the scale is added to its exponent.
// The conversion costs half an operation per element, including the check for codes that are not normal.
// Codes that are not normal, other dtypes and MXFP6 go through kernels/avx2/dequantize/dequantize_scaled.h.
#pragma once

#include "kernels/avx2/dequantize/dequantize_scaled.h"
#include "kernels/avx2/lut16.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kMxBlockK = 32;
alignas(32) constexpr float kMxE2m1[16] = {0,     0.5f,  1,  1.5f,  2,  3,  4,  6,
                                           -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

// Mask of the bits of a float8 code in the upper half of a word, without the copies of its sign.
template <int kFractionBits>
constexpr auto kMovedBits = static_cast<int16_t>(0x8000 | 127 << (7 - kFractionBits));

// Returns 2^(code - 127). Code 0 gives a subnormal number; code 255 gives NaN.
[[maybe_unused]] float e8m0_value(uint8_t code) {
  if (code == 255) return __builtin_bit_cast(float, 0x7FC00000u);
  return __builtin_bit_cast(float, code == 0 ? 0x00400000u : static_cast<uint32_t>(code) << 23);
}

template <Float8 kFormat>
void dequantize_mx_floats(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int64_t kAtOnceBlocks = 32;
  const auto* codes = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(in_plane(p, "scale"));
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2, blocks = p.k / kMxBlockK;
  const bool past_caches = is_past_caches(p, kMxBlockK);
  float values[kAtOnceBlocks];
  for (int64_t n = first; n < last; ++n)
    for (int64_t block = 0; block < blocks; block += kAtOnceBlocks) {
      const int64_t count = blocks - block < kAtOnceBlocks ? blocks - block : kAtOnceBlocks;
      for (int64_t i = 0; i < count; ++i) values[i] = e8m0_value(scales[n * blocks + block + i]);
      scale_float_groups<kFormat>(p.w_dtype, codes + n * p.k + block * kMxBlockK, count, kMxBlockK, values,
                                  past_caches,
                                  static_cast<char*>(p.y) + n * p.ldy_bytes + block * kMxBlockK * bytes);
    }
}

[[maybe_unused]] void dequantize_mxfp4(const qcts_problem& p, int64_t first, int64_t last) {
  const auto* codes = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  const auto* scales = static_cast<const uint8_t*>(in_plane(p, "scale"));
  const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
  const bool past_caches = is_past_caches(p, kMxBlockK);
  for (int64_t n = first; n < last; ++n)
    for (int64_t k = 0; k < p.k; k += kMxBlockK) {
      const int64_t at = n * p.k + k;
      look_up_codes<false>(
          p.w_dtype, lut16_of_products(p.w_dtype, kMxE2m1, e8m0_value(scales[at / kMxBlockK])),
          codes + at / 2, kMxBlockK, static_cast<char*>(p.y) + n * p.ldy_bytes + k * bytes, past_caches);
    }
}

// Steps for blocks in bfloat16. The AVX-512 variant replaces them.
struct MxBlocks {
  // Looks up the codes of a block in a table of 16 products.
  static void look_up_e2m1(__m256i products, const uint8_t* pairs, bool past_caches, char* to) {
    Lut16 table;
    split_bytes(products, &table.low, &table.high);
    look_up_codes<false, false>(table, pairs, kMxBlockK, to, past_caches);
  }

  // Converts normal codes and adds `added` to their exponents.
  template <int kFractionBits>
  static void move_float8(const uint8_t* codes, int added, bool past_caches, char* to) {
    const __m256i exponents = _mm256_set1_epi16(static_cast<int16_t>(added << 7));
    for (int half = 0; half < 2; ++half) {  // the extended sign is shifted with the other bits
      const auto* from = reinterpret_cast<const __m128i*>(codes) + half;
      const __m256i moved = _mm256_slli_epi16(_mm256_cvtepi8_epi16(_mm_loadu_si128(from)), 7 - kFractionBits);
      const __m256i kept = _mm256_and_si256(moved, _mm256_set1_epi16(kMovedBits<kFractionBits>));
      store32(to + 32 * half, _mm256_add_epi16(kept, exponents), past_caches);
    }
  }
};

// In bfloat16, the scale is added to the exponents of the 16 values, except for the zeros.
// No value is rounded.
template <class Blocks>
void dequantize_mxfp4_bf16(const qcts_problem& p, int64_t first, int64_t last) {
  const __m256i ones =
      _mm256_set_m128i(to_bf16(_mm256_load_ps(kMxE2m1 + 8)), to_bf16(_mm256_load_ps(kMxE2m1)));
  const __m256i zeros = _mm256_cmpeq_epi16(_mm256_slli_epi16(ones, 1), _mm256_setzero_si256());
  const int64_t blocks = p.k / kMxBlockK;
  const bool past_caches = is_past_caches(p, kMxBlockK);
  for (int64_t n = first; n < last; ++n) {
    const uint8_t* pairs = static_cast<const uint8_t*>(in_plane(p, "qdata")) + n * p.k / 2;
    const uint8_t* scales = static_cast<const uint8_t*>(in_plane(p, "scale")) + n * blocks;
    char* to = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t block = 0; block < blocks; ++block, pairs += kMxBlockK / 2, to += 2 * kMxBlockK) {
      const uint8_t scale = scales[block];
      if (scale < 4 || scale > 250) {  // some values are subnormal, infinite or NaN
        look_up_codes<false, false>(lut16_of_products(QCTS_BF16, kMxE2m1, e8m0_value(scale)), pairs,
                                    kMxBlockK, to, past_caches);
        continue;
      }
      const __m256i power = _mm256_set1_epi16(static_cast<int16_t>((scale - 127) * 128));
      Blocks::look_up_e2m1(_mm256_add_epi16(ones, _mm256_andnot_si256(zeros, power)), pairs, past_caches, to);
    }
  }
}

// Converts a block to bfloat16 if it has a code that is not normal,
// or if the exponent of its scale is outside the range of bfloat16.
template <Float8 kFormat>
[[gnu::noinline]] void dequantize_odd_mx_block(const uint8_t* codes, uint8_t scale, bool past_caches,
                                               char* to) {
  scale_floats<kFormat>(QCTS_BF16, codes, kMxBlockK, e8m0_value(scale), past_caches, to);
}

// Converts MXFP8 to bfloat16. The product of a normal code is exact in bfloat16 if bfloat16 has its exponent.
template <class Blocks, Float8 kFormat>
void dequantize_mxfp8_bf16(const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int kFractionBits = Float8Bits<kFormat>::kFractionBits, kBias = kFormat == Float8::e4m3 ? 7 : 15;
  constexpr int kMin = 1 << kFractionBits, kMax = kFormat == Float8::e4m3 ? 0x7E : 0x7B;  // normal codes
  constexpr int kMaxExponent = kMax >> kFractionBits;
  const int64_t blocks = p.k / kMxBlockK;
  const bool past_caches = is_past_caches(p, kMxBlockK);
  for (int64_t n = first; n < last; ++n) {
    const uint8_t* from = static_cast<const uint8_t*>(in_plane(p, "qdata")) + n * p.k;
    const uint8_t* scales = static_cast<const uint8_t*>(in_plane(p, "scale")) + n * blocks;
    char* to = static_cast<char*>(p.y) + n * p.ldy_bytes;
    for (int64_t block = 0; block < blocks; ++block, from += kMxBlockK, to += 2 * kMxBlockK) {
      // added to the exponent of a code, it gives the exponent in bfloat16
      const int added = scales[block] - kBias;
      const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
      const __m256i above =
          _mm256_sub_epi8(_mm256_and_si256(codes, _mm256_set1_epi8(127)), _mm256_set1_epi8(kMin));
      const __m256i normal = _mm256_cmpeq_epi8(_mm256_min_epu8(above, _mm256_set1_epi8(kMax - kMin)), above);
      if (added < 0 || added > 254 - kMaxExponent || _mm256_movemask_epi8(normal) != -1)
        dequantize_odd_mx_block<kFormat>(from, scales[block], past_caches, to);
      else
        Blocks::template move_float8<kFractionBits>(from, added, past_caches, to);
    }
  }
}

template <class Blocks>
void dequantize_mx(const qcts_problem& p, int64_t first, int64_t last) {
  const bool bf16 = p.w_dtype == QCTS_BF16;
  const uint32_t element = scheme_params(p).element_dtype;
  const auto rows = element == QCTS_F4_E2M1_X2 ? bf16 ? dequantize_mxfp4_bf16<Blocks> : dequantize_mxfp4
                    : element == QCTS_F6_E2M3  ? dequantize_mx_floats<Float8::e2m3>
                    : element == QCTS_F6_E3M2  ? dequantize_mx_floats<Float8::e3m2>
                    : element == QCTS_F8_E5M2  ? bf16 ? dequantize_mxfp8_bf16<Blocks, Float8::e5m2>
                                                      : dequantize_mx_floats<Float8::e5m2>
                     : bf16 ? dequantize_mxfp8_bf16<Blocks, Float8::e4m3>
                                               : dequantize_mx_floats<Float8::e4m3>;
  rows(p, first, last);
}

}  // namespace
}  // namespace qcts::avx2
