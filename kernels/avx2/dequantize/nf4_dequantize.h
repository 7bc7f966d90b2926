// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes blocks of NF4, for the AVX2 variants.
// The kernel reads half a byte and writes two or four bytes per element,
// so writing the result limits the speed.
// The 16 values of a block are computed once, with the roundings of dequantize/nf4_scalar.cc, and looked up.
// A block may continue from one row to the next, so a row may begin and end inside a block.
#pragma once

#include "kernels/avx2/lut16.h"

namespace qcts::avx2 {
namespace {

struct Nf4Planes {
  const uint8_t* pairs;
  const int8_t* scalers;
  const void* factors;
  float mean;
  alignas(64) float values[16];
  bool ordinary;  // every value is +0, or has a magnitude from 2^-20 to 2^20
};

// Scales of eight blocks. The index of the first block is a multiple of eight, so the blocks share a factor.
// Computed one at a time, the scales would be a chain of 80 cycles for 64 elements.
struct Nf4Scales {
  int64_t first_block;
  float of[8];
  bool ordinary;  // all scales are in [2^-80, 2^80]
};
[[gnu::always_inline]] inline Nf4Scales nf4_scales(const Nf4Planes& from, uint32_t dtype,
                                                   int64_t first_block) {
  const __m128i codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from.scalers + first_block));
  const __m256 factor = _mm256_set1_ps(one_element(dtype, from.factors, first_block / 256));
  const __m256 centred =
      round8(dtype, _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(codes)), factor));
  const __m256 scale = round8(dtype, _mm256_add_ps(centred, _mm256_set1_ps(from.mean)));
  const __m256 near = _mm256_and_ps(_mm256_cmp_ps(scale, _mm256_set1_ps(0x1p-80f), _CMP_GE_OQ),
                                    _mm256_cmp_ps(scale, _mm256_set1_ps(0x1p80f), _CMP_LE_OQ));
  Nf4Scales scales = {first_block, {}, _mm256_movemask_ps(near) == 0xFF};
  _mm256_storeu_ps(scales.of, scale);
  return scales;
}

// Converts whole blocks to bfloat16 if their values and scales are ordinary.
// The AVX-512 variant replaces this step.
struct Nf4Bytes {
  static void dequantize_blocks(const float* values, const float* scales, int64_t blocks,
                                const uint8_t* pairs, bool past_caches, char* to) {
    const __m256 lower = _mm256_load_ps(values), upper = _mm256_load_ps(values + 8);
    const __m256 outer = _mm256_permute2f128_ps(lower, upper, 0x20),
                 inner = _mm256_permute2f128_ps(lower, upper, 0x31);
    for (int64_t i = 0; i < blocks; ++i) {
      const __m256 factor = _mm256_set1_ps(scales[i]);
      look_up_codes<true, false>(
          finite_bf16_lut16(_mm256_mul_ps(outer, factor), _mm256_mul_ps(inner, factor)), pairs + 32 * i, 64,
          to + 128 * i, past_caches);
    }
  }
};

// Converts elements [index, end) of one block.
template <bool kWide>
[[gnu::always_inline]] inline void dequantize_nf4_part(const Nf4Planes& from, const Lut16& table,
                                                       int64_t index, int64_t end, char* to,
                                                       bool past_caches) {
  if (index % 2 != 0) {  // begins with the low nibble of a byte
    const auto alone = static_cast<uint8_t>(from.pairs[index / 2] << 4);
    look_up_codes<true, kWide>(table, &alone, 1, to);
    ++index;
    to += kWide ? 4 : 2;
  }
  look_up_codes<true, kWide>(table, from.pairs + index / 2, end - index, to, past_caches);
}

template <class Blocks, bool kWide>
void dequantize_nf4_rows(const Nf4Planes& from, const qcts_problem& p, int64_t first, int64_t last) {
  constexpr int64_t kBytes = kWide ? 4 : 2;
  const uint32_t dtype = kWide ? static_cast<uint32_t>(QCTS_F32) : p.w_dtype;
  const bool ordinary = dtype == QCTS_BF16 && from.ordinary,
             past_caches = is_past_caches(p, 64) && p.k % 64 == 0;
  Nf4Scales scales = {-1, {}, false};
  for (int64_t n = first; n < last; ++n) {
    char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
    const int64_t begin = n * p.k, end = begin + p.k;
    for (int64_t index = begin, stop; index < end; index = stop) {
      const int64_t block = index / 64, in_eight = block % 8;
      char* to = row + (index - begin) * kBytes;
      if (scales.first_block != block - in_eight) scales = nf4_scales(from, dtype, block - in_eight);
      const int64_t whole = index % 64 != 0 ? 0 : (end - index) / 64;
      if (ordinary && scales.ordinary && whole != 0) {
        const int64_t blocks = whole < 8 - in_eight ? whole : 8 - in_eight;
        Blocks::dequantize_blocks(from.values, scales.of + in_eight, blocks, from.pairs + index / 2,
                                  past_caches, to);
        stop = index + 64 * blocks;
        continue;
      }
      stop = 64 * block + 64 < end ? 64 * block + 64 : end;
      dequantize_nf4_part<kWide>(from, lut16_of_products(dtype, from.values, scales.of[in_eight]), index,
                                 stop, to, past_caches);
    }
  }
}

template <class Blocks>
void dequantize_nf4(const qcts_problem& p, int64_t first, int64_t last) {
  Nf4Planes from = {static_cast<const uint8_t*>(in_plane(p, "quantized_data")),
                    static_cast<const int8_t*>(in_plane(p, "quantized_scalers")),
                    in_plane(p, "quantization_factor"),
                    one_element(p.w_dtype, in_plane(p, "scaler_mean"), 0),
                    {},
                    true};
  for (int i = 0; i < 16; ++i) {
    const float value = one_element(p.w_dtype, in_plane(p, "nf4"), i), size = __builtin_fabsf(value);
    from.values[i] = value;
    from.ordinary &= __builtin_bit_cast(uint32_t, value) == 0 || (size >= 0x1p-20f && size <= 0x1p20f);
  }
  p.w_dtype == QCTS_F32 ? dequantize_nf4_rows<Blocks, true>(from, p, first, last)
                        : dequantize_nf4_rows<Blocks, false>(from, p, first, last);
}

}  // namespace
}  // namespace qcts::avx2
