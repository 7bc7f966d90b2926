// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of mx, weights or activations, for the AVX2 variants.
// There are two passes over 1024 elements of a row, which stay in L1.
// (4096 elements took 1.15 times as long.) The first pass computes the scales of eight blocks at once.
// The largest magnitude of a block is found by comparing the bits of the elements as integers.
// The second pass computes the codes.
// Two instructions per element of bfloat16 limit the speed to half of the speed of a plain copy.
#pragma once

#include "kernels/avx2/quantize/e2m1_e2m3_encode.h"
#include "kernels/avx2/stores.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kMxBlock = 32, kMxBlocks = 32;  // elements of a block; blocks in a pass

using MxScales = BlockScales<kMxBlocks>;

// The product of an element and a power of two has at most 11 bits, so short_codes can encode it.
template <SmallFloat kFormat, uint32_t kDtype>
constexpr bool kShort = kDtype != QCTS_F32 && !kTwoExponentBits<kFormat>;
template <SmallFloat kFormat>
constexpr float kUnit = kFormat == SmallFloat::e4m3   ? 0x1p-120f
                        : kFormat == SmallFloat::e5m2 ? 0x1p-112f
                                                      : 0x1p-124f;  // 2^(bias - 127)
template <SmallFloat kFormat>
constexpr int kLargestExponent = kFormat == SmallFloat::e4m3   ? 8
                                 : kFormat == SmallFloat::e5m2 ? 15
                                 : kFormat == SmallFloat::e3m2 ? 4
                                                               : 2;

// The stored bytes of eight scales, and the inverses of the scales.
// For ordinary numbers, bytes and inverses equal those of mx_scale.
// A factor of 0 means that mx_scale has to be called.
struct MxEight {
  __m256i byte;
  __m256 factor;
};

// The greatest fraction, in units of 2^-23, whose logarithm is rounded to an integer,
// for each exponent of a ratio. families/block_scales.cc explains it.
struct RceilFractions {
  alignas(32) int32_t max[256];
  constexpr RceilFractions() : max() {
    constexpr int32_t kMax[] = {0, 0, 0, 1, 2, 5, 11, 22};  // ln 2 * 2^(binade - 1), starting at binade -1
    for (int biased = 0; biased < 256; ++biased) {
      const int size = biased < 127 ? 127 - biased : biased - 127;
      int above = 1;  // binade + 1
      while (size >> above != 0) ++above;
      if (biased < 127 && (size & (size - 1)) == 0) --above;
      max[biased] = size == 0 || size == 128 ? 0 : kMax[above];
    }
  }
};
constexpr RceilFractions kRceilFractions;

template <SmallFloat kFormat>
[[gnu::always_inline]] inline MxEight rceil_scales(__m256 largest) {
  const __m256 ratio = _mm256_div_ps(largest, _mm256_set1_ps(SmallBits<kFormat>::kLargest));
  const __m256i bits = _mm256_castps_si256(ratio), biased = _mm256_srli_epi32(bits, 23);
  const __m256i fraction = _mm256_and_si256(bits, _mm256_set1_epi32(0x7FFFFF));
  const __m256i max = _mm256_i32gather_epi32(kRceilFractions.max, biased, 4);
  const __m256i byte = _mm256_sub_epi32(biased, _mm256_cmpgt_epi32(fraction, max));
  const __m256i normal = _mm256_and_si256(_mm256_cmpgt_epi32(biased, _mm256_setzero_si256()),
                                          _mm256_cmpgt_epi32(_mm256_set1_epi32(254), byte));
  const __m256i factor = _mm256_slli_epi32(_mm256_sub_epi32(_mm256_set1_epi32(254), byte), 23);
  const __m256 zero = _mm256_cmp_ps(ratio, _mm256_setzero_ps(), _CMP_EQ_OQ);
  return {_mm256_and_si256(byte, normal),
          _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_and_si256(factor, normal)), _mm256_set1_ps(1), zero)};
}

template <SmallFloat kFormat>
[[gnu::always_inline]] inline MxEight mx_scales(MxMode mode, __m256 largest) {
  if (mode == MxMode::rceil) return rceil_scales<kFormat>(largest);
  __m256i bits = _mm256_castps_si256(largest);
  if (mode == MxMode::even)
    bits = _mm256_add_epi32(bits, _mm256_set1_epi32(1 << (22 - SmallBits<kFormat>::kFraction)));
  if (mode == MxMode::ceil) bits = _mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFFFF));
  const __m256i byte = _mm256_max_epi32(
      _mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(kLargestExponent<kFormat>)),
      _mm256_setzero_si256());
  const __m256i raised = _mm256_max_epi32(byte, _mm256_set1_epi32(1));
  return {byte, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_sub_epi32(_mm256_set1_epi32(254), raised), 23))};
}

// All encoders below work with factors within these bounds.
// kUnit moves the exponents for short codes. A factor multiplied by kUnit stays a normal number.
// For e2m1 from bfloat16, an eighth of the scale stays a normal number too.
template <SmallFloat kFormat, uint32_t kDtype>
constexpr float kMinFactor = kShort<kFormat, kDtype> ? 0x1p-126f : 0x1p-149f;
template <SmallFloat kFormat, uint32_t kDtype>
constexpr float kMaxFactor = kFormat == SmallFloat::e2m1 && kDtype == QCTS_BF16 ? 0x1p123f : 0x1p127f;

// Computes the scales of blocks [g, g + 8).
// A block is odd if it contains a NaN or an infinity, or if its factor is out of bounds,
// as may happen for a block of zeros.
template <SmallFloat kFormat, uint32_t kDtype>
[[gnu::always_inline]] inline void choose_mx(MxMode mode, __m256 largest, int64_t g, MxScales* scales,
                                             uint8_t* bytes) {
  constexpr bool kMoved = kShort<kFormat, kDtype>;
  const MxEight eight = mx_scales<kFormat>(mode, largest);
  const __m256 factor = kMoved ? _mm256_mul_ps(eight.factor, _mm256_set1_ps(kUnit<kFormat>)) : eight.factor;
  const __m256 finite = _mm256_cmp_ps(largest, _mm256_set1_ps(__builtin_inff()), _CMP_LT_OQ);
  const __m256 near =
      _mm256_or_ps(_mm256_cmp_ps(factor, _mm256_set1_ps(kMaxFactor<kFormat, kDtype>), _CMP_LE_OQ),
                   _mm256_cmp_ps(largest, _mm256_setzero_ps(), _CMP_EQ_OQ));
  const __m256 ordinary =
      _mm256_and_ps(_mm256_and_ps(finite, near),
                    _mm256_cmp_ps(factor, _mm256_set1_ps(kMinFactor<kFormat, kDtype>), _CMP_GE_OQ));
  _mm256_store_ps(scales->factor + g, factor);
  scales->odd[g / kLanes] = static_cast<uint8_t>(_mm256_movemask_ps(ordinary) ^ 0xFF);
  store_bytes(bytes + g, eight.byte);
}

// Encodes 32 16-bit elements with a factor that is a power of two.
// Half of the format's smallest number is 2^(-bias - kFraction), and a product is exact down to it.
// The 11 bits of the product end at 2^(-bias - 13) or above, and float32 ends at 2^(-bias - 22).
// A smaller product is rounded to that half or below, which becomes 0.
// So exact ties stay ties, and every other product is at least 2^9 units away from a tie.
// bfloat16 is widened by unpacking. float16 is loaded in the order that unpacking gives.
template <SmallFloat kFormat, uint32_t kDtype>
[[gnu::always_inline]] inline __m256i short_codes(const char* at, __m256 factor) {
  constexpr auto kMax = static_cast<char>(kFormat == SmallFloat::e4m3   ? 0x7E
                                          : kFormat == SmallFloat::e5m2 ? 0x7B
                                                                        : 0x1F);
  const auto sixteen = [&](__m256i x) {
    const __m256i magnitudes = _mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)), zero = _mm256_setzero_si256();
    __m256i low, high;
    if (kDtype == QCTS_BF16) {
      low = _mm256_unpacklo_epi16(zero, magnitudes);
      high = _mm256_unpackhi_epi16(zero, magnitudes);
    } else {
      const __m256i apart = _mm256_permute4x64_epi64(magnitudes, 0xD8);
      low = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_castsi256_si128(apart)));
      high = _mm256_castps_si256(_mm256_cvtph_ps(_mm256_extracti128_si256(apart, 1)));
    }
    return _mm256_packs_epi32(short_quotient_codes<kFormat>(low, factor),
                              short_quotient_codes<kFormat>(high, factor));
  };
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
                b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
  const __m256i codes = _mm256_min_epu8(_mm256_packus_epi16(sixteen(a), sixteen(b)), _mm256_set1_epi8(kMax));
  const __m256i signs = _mm256_and_si256(_mm256_packs_epi16(a, b), _mm256_set1_epi8(static_cast<char>(0x80)));
  return _mm256_permute4x64_epi64(
      _mm256_or_si256(codes, _mm256_srli_epi16(signs, SmallBits<kFormat>::kBelowSign)), 0xD8);
}

// Encodes `count` blocks with ordinary scales; `count` is even.
template <SmallFloat kFormat, uint32_t kDtype>
[[gnu::always_inline]] inline void mx_codes(const char* from, int64_t next_bytes, int64_t count,
                                            const float* factors, bool past_caches, uint8_t* codes) {
  constexpr int64_t kBlockBytes = kMxBlock * (kDtype == QCTS_F32 ? 4 : 2);
  for (int64_t g = 0; g < count; g += 2) {
    for (int64_t line = 0; line < 2 * kBlockBytes; line += 64)
      _mm_prefetch(from + next_bytes + g * kBlockBytes + line, _MM_HINT_T0);
    const char* at = from + g * kBlockBytes;
    const __m256 by[2] = {_mm256_set1_ps(factors[g]), _mm256_set1_ps(factors[g + 1])};
    if constexpr (kFormat == SmallFloat::e2m1) {
      const auto words = [&](int i) {
        return code_words<kFormat, kDtype>(at + i * kBlockBytes / 2, by[i / 2]);
      };
      store32(codes + g * kMxBlock / 2, e2m1_pairs({words(0), words(1), words(2), words(3)}), past_caches);
    } else {
      for (int i = 0; i < 2; ++i) {
        const char* block = at + i * kBlockBytes;
        uint8_t* to = codes + (g + i) * kMxBlock;
        if constexpr (kFormat == SmallFloat::e2m3)
          store32(to,
                  _mm256_permute4x64_epi64(
                      code_bytes<kFormat>(code_words<kFormat, kDtype>(block, by[i]),
                                          code_words<kFormat, kDtype>(block + kBlockBytes / 2, by[i])),
                      0xD8),
                  past_caches);
        else if constexpr (kShort<kFormat, kDtype>)
          store32(to, short_codes<kFormat, kDtype>(block, by[i]), past_caches);
        else
          store32(to, small_codes<kFormat>(scaled_by(load_block(kDtype, block), by[i], by[i])), past_caches);
      }
    }
  }
}

// Finds the largest magnitudes of blocks [first, count). Both numbers are multiples of eight.
template <uint32_t kDtype>
[[gnu::always_inline]] inline void mx_largest(const char* from, int64_t first, int64_t count,
                                              float* largest) {
  constexpr int64_t kBlockBytes = kMxBlock * (kDtype == QCTS_F32 ? 4 : 2);
  for (; first < count; first += kLanes)
    _mm256_store_ps(largest + first, largest_of_eight<kDtype, kBlockBytes>(from + first * kBlockBytes));
}

// The AVX-512 variant replaces these steps.
struct MxCodes {
  template <uint32_t kDtype>
  [[gnu::always_inline]] static void largest(const char* from, int64_t count, float* largest) {
    mx_largest<kDtype>(from, 0, count, largest);
  }
  template <SmallFloat kFormat, uint32_t kDtype>
  [[gnu::always_inline]] static void codes(const char* from, int64_t next_bytes, int64_t count,
                                           const float* factors, bool past_caches, uint8_t* to) {
    mx_codes<kFormat, kDtype>(from, next_bytes, count, factors, past_caches, to);
  }
};

// Quantizes `count` blocks, a multiple of eight, and prefetches the bytes that are next_bytes ahead.
template <class Codes, SmallFloat kFormat, uint32_t kDtype>
[[gnu::always_inline]] inline void quantize_mx_blocks(MxMode mode, const char* from, int64_t next_bytes,
                                                      int64_t count, bool past_caches, uint8_t* codes,
                                                      uint8_t* bytes) {
  constexpr int64_t kBlockBytes = kMxBlock * (kDtype == QCTS_F32 ? 4 : 2);
  constexpr int64_t kBlockCodes = kFormat == SmallFloat::e2m1 ? kMxBlock / 2 : kMxBlock;
  MxScales scales;
  Codes::template largest<kDtype>(from, count, scales.largest);
  for (int64_t first = 0; first < count; first += kLanes)
    choose_mx<kFormat, kDtype>(mode, _mm256_load_ps(scales.largest + first), first, &scales, bytes);
  Codes::template codes<kFormat, kDtype>(from, next_bytes, count, scales.factor, past_caches, codes);
  for (int64_t first = 0; first < count; first += kLanes)
    for (uint32_t odd = scales.odd[first / kLanes]; odd != 0; odd &= odd - 1) {
      const int64_t g = first + __builtin_ctz(odd);
      const float largest = scales.largest[g];
      const BlockScale scale = mx_scale({kFormat, mode}, largest != largest ? __builtin_nanf("") : largest);
      bytes[g] = scale.byte;
      quantize_odd_block(kDtype, from + g * kBlockBytes, kMxBlock, kFormat, scale, codes + g * kBlockCodes);
    }
}

template <class Codes, SmallFloat kFormat, uint32_t kDtype>
void quantize_mx_row(MxMode mode, const char* row, int64_t next_bytes, int64_t blocks, bool past_caches,
                     uint8_t* codes, uint8_t* scales) {
  constexpr int64_t kBlockBytes = kMxBlock * (kDtype == QCTS_F32 ? 4 : 2);
  constexpr int64_t kBlockCodes = kFormat == SmallFloat::e2m1 ? kMxBlock / 2 : kMxBlock;
  const int64_t whole_blocks = blocks / kLanes * kLanes;
  int64_t g = 0;
  for (int64_t count; g < whole_blocks; g += count) {
    count = whole_blocks - g < kMxBlocks ? whole_blocks - g : kMxBlocks;
    quantize_mx_blocks<Codes, kFormat, kDtype>(mode, row + g * kBlockBytes, next_bytes, count, past_caches,
                                               codes + g * kBlockCodes, scales + g);
  }
  if (g == blocks) return;
  char some[kLanes * kBlockBytes] = {};
  uint8_t some_codes[kLanes * kBlockCodes], some_scales[kLanes];
  const auto count = static_cast<size_t>(blocks - g);
  std::memcpy(some, row + g * kBlockBytes, count * kBlockBytes);
  quantize_mx_blocks<Codes, kFormat, kDtype>(mode, some, 0, kLanes, false, some_codes, some_scales);
  std::memcpy(codes + g * kBlockCodes, some_codes, count * kBlockCodes);
  std::memcpy(scales + g, some_scales, count);
}

using MxRow = void (*)(MxMode mode, const char* row, int64_t next_bytes, int64_t blocks, bool past_caches,
                       uint8_t* codes, uint8_t* scales);

template <class Codes, uint32_t kDtype>
MxRow mx_row_of(SmallFloat format) {
  switch (format) {
    case SmallFloat::e4m3:
      return quantize_mx_row<Codes, SmallFloat::e4m3, kDtype>;
    case SmallFloat::e5m2:
      return quantize_mx_row<Codes, SmallFloat::e5m2, kDtype>;
    case SmallFloat::e2m3:
      return quantize_mx_row<Codes, SmallFloat::e2m3, kDtype>;
    case SmallFloat::e3m2:
      return quantize_mx_row<Codes, SmallFloat::e3m2, kDtype>;
    default:
      return quantize_mx_row<Codes, SmallFloat::e2m1, kDtype>;
  }
}

template <class Codes>
void quantize_mx_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* codes = static_cast<uint8_t*>(out_plane(p, "qdata"));
  auto* scales = static_cast<uint8_t*>(out_plane(p, "scale"));
  const MxRecipe recipe = mx_recipe(p);
  const FloatRows from = float_rows(p);
  const MxRow row_of = from.dtype == QCTS_F32   ? mx_row_of<Codes, QCTS_F32>(recipe.element)
                       : from.dtype == QCTS_F16 ? mx_row_of<Codes, QCTS_F16>(recipe.element)
                                                : mx_row_of<Codes, QCTS_BF16>(recipe.element);
  const int64_t per_byte = recipe.element == SmallFloat::e2m1 ? 2 : 1, blocks = p.k / kMxBlock;
  const bool past_caches = is_past_caches(codes, from.rows * p.k / per_byte, p.k / per_byte);
  for (int64_t row = first; row < last; ++row)
    row_of(recipe.mode, from.row(row), from.ld_bytes, blocks, past_caches, codes + row * p.k / per_byte,
           scales + row * blocks);
}

}  // namespace
}  // namespace qcts::avx2
