// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of nvfp4, weights or activations, for the AVX2 variants.
// There are two passes over 1024 elements of a row, which stay in L1.
// The first pass computes the scales of eight blocks at once.
// The largest magnitude of a block is found by comparing the bits of the elements as integers.
// The second pass computes the codes. There are three dependent divisions from elements to factors.
// Finishing eight blocks before the next eight took 1.5 times as long.
// Passes over 4096 elements took 1.13 times as long. Two instructions per element limit the speed.
// If the scheme has two levels, the tensor is read twice, which gives 0.37 of the speed of a plain copy.
#pragma once

#include "kernels/avx2/quantize/e2m1_e2m3_encode.h"
#include "kernels/avx2/stores.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kNvfp4Block = 16, kNvfp4Blocks = 64;  // elements of a block; blocks in a pass

using Nvfp4Scales = BlockScales<kNvfp4Blocks>;

// Computes the scales of blocks [g, g + 8), equal to those of nvfp4_scale.
// Odd blocks are left to nvfp4_scale.
// A block is odd if it contains a NaN, if its factor is negative or infinite,
// or if code_words does not accept its products.
[[gnu::always_inline]] inline void choose_nvfp4(__m256 largest, const float* whole, int64_t g,
                                                Nvfp4Scales* scales, uint8_t* bytes) {
  const __m256 one = _mm256_set1_ps(1);
  __m256 scale = _mm256_div_ps(largest, _mm256_set1_ps(6)), inverse = one;
  if (whole != nullptr) {
    scale = _mm256_div_ps(scale, _mm256_set1_ps(*whole));
    inverse = _mm256_div_ps(one, _mm256_set1_ps(*whole));
  }
  const __m256 nan = _mm256_cmp_ps(scale, scale, _CMP_UNORD_Q);
  const __m256i bits =
      _mm256_castps_si256(_mm256_min_ps(_mm256_max_ps(scale, _mm256_set1_ps(0x1p-6f)), _mm256_set1_ps(448)));
  // The scale is a normal e4m3 number, so half a unit is added to its bits.
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 20), _mm256_set1_epi32(1));
  const __m256i code = _mm256_srli_epi32(
      _mm256_add_epi32(_mm256_add_epi32(bits, last), _mm256_set1_epi32(0x7FFFF - (120 << 23))), 20);
  const __m256 stored =
      _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(code, _mm256_set1_epi32(120 << 3)), 20));
  const __m256 factor = _mm256_div_ps(inverse, stored);
  const __m256 small = _mm256_cmp_ps(_mm256_mul_ps(largest, factor), _mm256_set1_ps(0x1p13f), _CMP_LT_OQ);
  _mm256_store_ps(scales->largest + g, largest);
  _mm256_store_ps(scales->factor + g, factor);
  scales->odd[g / kLanes] = static_cast<uint8_t>(_mm256_movemask_ps(nan) | _mm256_movemask_ps(factor) |
                                                 (_mm256_movemask_ps(small) ^ 0xFF));
  store_bytes(bytes + g, code);
}

// Computes the scales of blocks [first, count). Both numbers are multiples of eight.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void nvfp4_scales(const float* whole, const char* from, int64_t first,
                                                int64_t count, Nvfp4Scales* scales, uint8_t* bytes) {
  constexpr int64_t kBlockBytes = kNvfp4Block * (kDtype == QCTS_F32 ? 4 : 2);
  for (; first < count; first += kLanes) {
    const __m256 largest = largest_of_eight<kDtype, kBlockBytes>(from + first * kBlockBytes);
    const __m256 nan = _mm256_cmp_ps(largest, largest, _CMP_UNORD_Q);
    choose_nvfp4(_mm256_blendv_ps(largest, _mm256_set1_ps(__builtin_nanf("")), nan), whole, first, scales,
                 bytes);
  }
}

// Encodes `count` blocks, a multiple of eight, and prefetches the bytes that are next_bytes ahead.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void nvfp4_codes(const Nvfp4Scales& scales, const char* from,
                                               int64_t next_bytes, int64_t count, bool past_caches,
                                               uint8_t* pairs) {
  constexpr int64_t kBlockBytes = kNvfp4Block * (kDtype == QCTS_F32 ? 4 : 2);
  for (int64_t g = 0; g < count; g += 4) {
    for (int64_t line = 0; line < 4 * kBlockBytes; line += 64)
      _mm_prefetch(from + next_bytes + g * kBlockBytes + line, _MM_HINT_T0);
    const auto words = [&](int64_t of) {
      return code_words<SmallFloat::e2m1, kDtype>(from + of * kBlockBytes, _mm256_set1_ps(scales.factor[of]));
    };
    store32(pairs + g * kNvfp4Block / 2, e2m1_pairs({words(g), words(g + 1), words(g + 2), words(g + 3)}),
            past_caches);
  }
}

// Steps of both passes. The AVX-512 variant replaces them.
struct Nvfp4Parts {
  template <uint32_t kDtype>
  [[gnu::always_inline]] static void scales(const float* whole, const char* from, int64_t count,
                                            Nvfp4Scales* scales, uint8_t* bytes) {
    nvfp4_scales<kDtype>(whole, from, 0, count, scales, bytes);
  }
  template <uint32_t kDtype>
  [[gnu::always_inline]] static void codes(const Nvfp4Scales& scales, const char* from, int64_t next_bytes,
                                           int64_t count, bool past_caches, uint8_t* pairs) {
    nvfp4_codes<kDtype>(scales, from, next_bytes, count, past_caches, pairs);
  }
  static float largest(uint32_t dtype, const char* elements, int64_t count) {
    return largest_of(dtype, elements, count);
  }
};

// Quantizes `count` blocks, a multiple of eight.
template <class Parts, uint32_t kDtype>
[[gnu::always_inline]] inline void quantize_nvfp4_blocks(const float* whole, const char* from,
                                                         int64_t next_bytes, int64_t count, bool past_caches,
                                                         uint8_t* pairs, uint8_t* bytes) {
  constexpr int64_t kBlockBytes = kNvfp4Block * (kDtype == QCTS_F32 ? 4 : 2);
  Nvfp4Scales scales;
  Parts::template scales<kDtype>(whole, from, count, &scales, bytes);
  Parts::template codes<kDtype>(scales, from, next_bytes, count, past_caches, pairs);
  for (int64_t first = 0; first < count; first += kLanes)
    for (uint32_t odd = scales.odd[first / kLanes]; odd != 0; odd &= odd - 1) {
      const int64_t g = first + __builtin_ctz(odd);
      const BlockScale scale = nvfp4_scale(scales.largest[g], whole);
      bytes[g] = scale.byte;
      quantize_odd_block(kDtype, from + g * kBlockBytes, kNvfp4Block, SmallFloat::e2m1, scale,
                         pairs + g * kNvfp4Block / 2);
    }
}

template <class Parts, uint32_t kDtype>
void quantize_nvfp4_row(const float* whole, const char* row, int64_t next_bytes, int64_t blocks,
                        bool past_caches, uint8_t* pairs, uint8_t* scales) {
  constexpr int64_t kBlockBytes = kNvfp4Block * (kDtype == QCTS_F32 ? 4 : 2);
  const int64_t whole_blocks = blocks / kLanes * kLanes;
  int64_t g = 0;
  for (int64_t count; g < whole_blocks; g += count) {
    count = whole_blocks - g < kNvfp4Blocks ? whole_blocks - g : kNvfp4Blocks;
    quantize_nvfp4_blocks<Parts, kDtype>(whole, row + g * kBlockBytes, next_bytes, count, past_caches,
                                         pairs + g * kNvfp4Block / 2, scales + g);
  }
  if (g == blocks) return;
  char some[kLanes * kBlockBytes] = {};
  uint8_t some_pairs[kLanes * kNvfp4Block / 2], some_scales[kLanes];
  const auto count = static_cast<size_t>(blocks - g);
  std::memcpy(some, row + g * kBlockBytes, count * kBlockBytes);
  quantize_nvfp4_blocks<Parts, kDtype>(whole, some, 0, kLanes, false, some_pairs, some_scales);
  std::memcpy(pairs + g * kNvfp4Block / 2, some_pairs, count * kNvfp4Block / 2);
  std::memcpy(scales + g, some_scales, count);
}

template <class Parts>
void quantize_nvfp4_rows(const qcts_problem& p, const float* whole, int64_t first, int64_t last) {
  auto* pairs = static_cast<uint8_t*>(out_plane(p, "qdata"));
  auto* scales = static_cast<uint8_t*>(out_plane(p, "scale"));
  const FloatRows from = float_rows(p);
  const auto row_of = from.dtype == QCTS_F32   ? quantize_nvfp4_row<Parts, QCTS_F32>
                      : from.dtype == QCTS_F16 ? quantize_nvfp4_row<Parts, QCTS_F16>
                                               : quantize_nvfp4_row<Parts, QCTS_BF16>;
  const int64_t blocks = p.k / kNvfp4Block;
  const bool past_caches = is_past_caches(pairs, from.rows * p.k / 2, p.k / 2);
  for (int64_t row = first; row < last; ++row)
    row_of(whole, from.row(row), from.ld_bytes, blocks, past_caches, pairs + row * p.k / 2,
           scales + row * blocks);
  _mm_sfence();
}
template <class Parts>
void quantize_nvfp4_problem(const qcts_problem* p) {
  quantize_nvfp4(*p, Parts::largest, quantize_nvfp4_rows<Parts>);
}

}  // namespace
}  // namespace qcts::avx2
