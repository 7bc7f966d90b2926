// SPDX-License-Identifier: BSD-3-Clause
// Encodes small floats, for the AVX2 variants of quantize.
// Eight arbitrary floats cost about twelve operations. Eight floats with few significant bits cost six.
#pragma once

#include "kernels/avx2/quantize.h"
#include "kernels/families/block_scales.h"

namespace qcts::avx2 {
namespace {

template <SmallFloat kFormat>
struct SmallBits {
  static constexpr int kFraction = kFormat == SmallFloat::e4m3 || kFormat == SmallFloat::e2m3   ? 3
                                   : kFormat == SmallFloat::e5m2 || kFormat == SmallFloat::e3m2 ? 2
                                                                                                : 1;
  static constexpr int kBias = kFormat == SmallFloat::e4m3   ? 7
                               : kFormat == SmallFloat::e5m2 ? 15
                               : kFormat == SmallFloat::e3m2 ? 3
                                                             : 1;
  static constexpr int kBelowSign = kFormat == SmallFloat::e4m3 || kFormat == SmallFloat::e5m2 ? 0
                                    : kFormat == SmallFloat::e2m1                              ? 4
                                                                                               : 2;
  static constexpr float kLargest = kFormat == SmallFloat::e4m3   ? 448.0f
                                    : kFormat == SmallFloat::e5m2 ? 57344.0f
                                    : kFormat == SmallFloat::e2m3 ? 7.5f
                                    : kFormat == SmallFloat::e3m2 ? 28.0f
                                                                  : 6.0f;
};

// Encodes the magnitudes of eight floats as int32. None of them may be NaN.
// Below the smallest normal number, an addition rounds: its sum counts units of the smallest subnormal.
// Above it, half a unit is added to the bits.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m256i small_magnitudes(__m256 value) {
  using Bits = SmallBits<kFormat>;
  constexpr int kDropped = 23 - Bits::kFraction;
  constexpr int kCounter = (127 + 24 - Bits::kBias - Bits::kFraction) << 23;
  const __m256 magnitude =
      _mm256_min_ps(_mm256_and_ps(value, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF))),
                    _mm256_set1_ps(Bits::kLargest));
  const __m256i bits = _mm256_castps_si256(magnitude), counter = _mm256_set1_epi32(kCounter);
  const __m256i subnormal =
      _mm256_sub_epi32(_mm256_castps_si256(_mm256_add_ps(magnitude, _mm256_castsi256_ps(counter))), counter);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, kDropped), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_add_epi32(_mm256_add_epi32(bits, odd),
                       _mm256_set1_epi32((1 << (kDropped - 1)) - 1 - ((127 - Bits::kBias) << 23)));
  const __m256i small = _mm256_cmpgt_epi32(_mm256_set1_epi32((128 - Bits::kBias) << 23), bits);
  return _mm256_blendv_epi8(_mm256_srli_epi32(rounded, kDropped), subnormal, small);
}

// 32 floats, in order.
struct Block {
  __m256 part[4];
};

[[gnu::always_inline]] inline Block load_block(uint32_t dtype, const char* from) {
  const int64_t bytes = dtype == QCTS_F32 ? 32 : 16;
  return {{load8(dtype, from), load8(dtype, from + bytes), load8(dtype, from + 2 * bytes),
           load8(dtype, from + 3 * bytes)}};
}

// Returns the largest magnitude of eight floats, or the quiet NaN if one is NaN.
// Magnitudes have the same order as the integers of their bits.
[[gnu::always_inline]] inline float largest_of8(__m256i magnitudes) {
  __m128i max = _mm_max_epu32(_mm256_castsi256_si128(magnitudes), _mm256_extracti128_si256(magnitudes, 1));
  max = _mm_max_epu32(max, _mm_shuffle_epi32(max, 0x4E));
  max = _mm_max_epu32(max, _mm_shuffle_epi32(max, 0xB1));
  const auto bits = static_cast<uint32_t>(_mm_cvtsi128_si32(max));
  return __builtin_bit_cast(float, bits > 0x7F800000u ? 0x7FC00000u : bits);
}

// Returns the lane-wise maximum of parts `first` and first + 1 of a block.
[[gnu::always_inline]] inline __m256i larger_magnitudes(const Block& block, int first) {
  const __m256i mask = _mm256_set1_epi32(0x7FFFFFFF);
  return _mm256_max_epu32(_mm256_and_si256(_mm256_castps_si256(block.part[first]), mask),
                          _mm256_and_si256(_mm256_castps_si256(block.part[first + 1]), mask));
}

// Encodes 32 products as one byte each. None of them may be NaN. The packs saturate.
// A pack of the bits of the products keeps the signs.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m256i small_codes(const Block& product) {
  const __m256i codes =
      narrow_to_bytes(small_magnitudes<kFormat>(product.part[0]), small_magnitudes<kFormat>(product.part[1]),
                      small_magnitudes<kFormat>(product.part[2]), small_magnitudes<kFormat>(product.part[3]));
  const __m256i bits =
      narrow_to_bytes(_mm256_castps_si256(product.part[0]), _mm256_castps_si256(product.part[1]),
                      _mm256_castps_si256(product.part[2]), _mm256_castps_si256(product.part[3]));
  const __m256i signs = _mm256_and_si256(bits, _mm256_set1_epi8(static_cast<char>(0x80)));
  return _mm256_or_si256(codes, _mm256_srli_epi16(signs, SmallBits<kFormat>::kBelowSign));
}

// Packs two 4-bit codes into a byte. The even code is in the low nibble.
[[gnu::always_inline]] inline __m128i pairs_of(__m256i codes) {
  const __m256i joined =
      _mm256_and_si256(_mm256_or_si256(codes, _mm256_srli_epi16(codes, 4)), _mm256_set1_epi16(0xFF));
  const __m256i bytes = _mm256_packus_epi16(joined, joined);
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(bytes, 0x08));
}

[[gnu::always_inline]] inline Block scaled_by(const Block& block, __m256 low, __m256 high) {
  return {{_mm256_mul_ps(block.part[0], low), _mm256_mul_ps(block.part[1], low),
           _mm256_mul_ps(block.part[2], high), _mm256_mul_ps(block.part[3], high)}};
}

// Scales of the blocks in one pass over a row.
template <int64_t kBlocks>
struct BlockScales {
  alignas(64) float largest[kBlocks], factor[kBlocks];
  uint8_t odd[kBlocks / kLanes];  // one bit per block, set if quantize_odd_block encodes it
};

// Encodes a block that holds a NaN or has a NaN scale.
[[maybe_unused]] [[gnu::noinline]] void quantize_odd_block(uint32_t dtype, const char* from, int64_t count,
                                                           SmallFloat format, const BlockScale& scale,
                                                           uint8_t* codes) {
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  const auto code = [&](int64_t i) {
    return small_float_code(format, scaled(scale, _mm256_cvtss_f32(load_some(dtype, from + i * bytes, 1))));
  };
  if (format == SmallFloat::e2m1) {
    for (int64_t pair = 0; pair < count / 2; ++pair)
      codes[pair] = static_cast<uint8_t>(code(2 * pair) | code(2 * pair + 1) << 4);
  } else {
    for (int64_t i = 0; i < count; ++i) codes[i] = code(i);
  }
}

// Encodes eight magnitudes times 2^(bias - 127) as int32. An overflow gives more than the largest code.
// The exponents of the format become exponents of float32.
// So its subnormals become subnormals of float32 and round alike, and the bits above kDropped are the code.
// A product within 32 units of a tie counts as a tie.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m256i short_quotient_codes(__m256i magnitudes, __m256 factor) {
  constexpr int kDropped = 23 - SmallBits<kFormat>::kFraction;
  const __m256i bits = _mm256_castps_si256(_mm256_mul_ps(_mm256_castsi256_ps(magnitudes), factor));
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, kDropped - 6), _mm256_set1_epi32(1 << 6));
  const __m256i half = _mm256_set1_epi32((1 << (kDropped - 1)) - (1 << 5));
  return _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, odd), half), kDropped);
}

// Returns the float with these bits of dtype, or the quiet NaN if they are a NaN.
[[maybe_unused]] float largest_from(uint32_t dtype, uint32_t bits) {
  const float largest = float_of_bits(dtype, bits);
  return largest != largest ? __builtin_bit_cast(float, 0x7FC00000u) : largest;
}
[[maybe_unused]] float largest_of(uint32_t dtype, const char* elements, int64_t count) {
  return largest_from(dtype, largest_magnitude_bits(dtype, elements, count));
}

}  // namespace
}  // namespace qcts::avx2
