// SPDX-License-Identifier: BSD-3-Clause
// Quantizes bands of float8 weights and activations, for the AVX2 variants.
// There are two passes over a block, which stays in cache. Eight codes of bfloat16 cost ten operations.
// If the scale or an element has more bits, eight codes cost a division,
// which takes 5 cycles in its own unit, and about 14 operations that run in parallel.
#pragma once

#include "kernels/avx2/quantize/blocks.h"
#include "kernels/avx2/stores.h"
#include "kernels/families/float8_scales.h"

namespace qcts::avx2 {
namespace {

// A scale of zero, infinity or NaN makes some quotients NaN.
[[maybe_unused]] bool is_plain_scale(float scale) { return scale > 0 && scale - scale == 0; }

// Rounds the quotient of each element and the scale to float32, then to a code.
template <SmallFloat kFormat, uint32_t kDtype>
void float8_codes(const char* from, int64_t count, float plain_scale, uint8_t* codes) {
  constexpr int64_t kBytes = kDtype == QCTS_F32 ? 4 : 2;
  const __m256 scale = _mm256_set1_ps(plain_scale);
  const auto quotients = [&](const Block& x) {
    return Block{{_mm256_div_ps(x.part[0], scale), _mm256_div_ps(x.part[1], scale),
                  _mm256_div_ps(x.part[2], scale), _mm256_div_ps(x.part[3], scale)}};
  };
  int64_t k = 0;
  for (; k + 32 <= count; k += 32)
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(codes + k),
                        small_codes<kFormat>(quotients(load_block(kDtype, from + k * kBytes))));
  for (; k < count; ++k) {
    const float x = _mm256_cvtss_f32(load_some(kDtype, from + k * kBytes, 1));
    codes[k] = float8_code(kFormat, x, plain_scale);
  }
}

// If x and the scale have at most 11 bits,
// the quotient is a tie of the format or at least 2^-16 away from a tie.
// The product with the reciprocal has an error of 2^-23.
// The product still separates the two cases: if it is within 2^-18 of a tie, the quotient is a tie.
// The factor can also move the exponents of the format to those of float32.
// Then subnormals of the format become subnormals of float32 and round alike,
// and (bits >> kDropped) is the code.
[[maybe_unused]] bool is_short_scale(float scale) {
  return (__builtin_bit_cast(uint32_t, scale) & 0x1FFF) == 0 && scale >= 0x1p-110f && scale <= 32;
}

template <SmallFloat kFormat>
constexpr float kShortUnit = kFormat == SmallFloat::e4m3 ? 0x1p-120f : 0x1p-112f;  // 2^(bias - 127)

// Gives the same result as float8_codes for 32 elements without NaN and a short scale.
// `factor` is kShortUnit / scale. Unpacking with zeros widens bfloat16, and packing narrows the codes again.
// Only the last pack changes the order.
template <SmallFloat kFormat>
[[gnu::always_inline]] inline __m256i bf16_32_codes(const char* at, __m256 factor) {
  const auto sixteen = [&](__m256i x) {
    const __m256i magnitudes = _mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)), zero = _mm256_setzero_si256();
    return _mm256_packs_epi32(short_quotient_codes<kFormat>(_mm256_unpacklo_epi16(zero, magnitudes), factor),
                              short_quotient_codes<kFormat>(_mm256_unpackhi_epi16(zero, magnitudes), factor));
  };
  const auto max = static_cast<char>(kFormat == SmallFloat::e4m3 ? 0x7E : 0x7B);
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)),
                b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
  const __m256i bytes = _mm256_min_epu8(_mm256_packus_epi16(sixteen(a), sixteen(b)), _mm256_set1_epi8(max));
  const __m256i signs = _mm256_and_si256(_mm256_packs_epi16(a, b), _mm256_set1_epi8(static_cast<char>(0x80)));
  return _mm256_permute4x64_epi64(_mm256_or_si256(bytes, signs), 0xD8);
}

// Encodes bfloat16 elements. Prefetches the bytes that are next_bytes ahead, for the first pass over them,
// and the bytes that follow them.
template <SmallFloat kFormat>
void bf16_float8_codes(const char* from, int64_t next_bytes, int64_t count, float plain_scale,
                       bool past_caches, uint8_t* codes) {
  const __m256 factor = _mm256_set1_ps(kShortUnit<kFormat> / plain_scale);
  int64_t k = 0;
  for (; k + 32 <= count; k += 32) {
    fetch_rows<64>(from + 2 * k, next_bytes);
    store32(codes + k, bf16_32_codes<kFormat>(from + 2 * k, factor), past_caches);
  }
  if (k == count) return;
  char rest[64] = {};
  uint8_t some[32];
  std::memcpy(rest, from + 2 * k, static_cast<size_t>(2 * (count - k)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(some), bf16_32_codes<kFormat>(rest, factor));
  std::memcpy(codes + k, some, static_cast<size_t>(count - k));
}

// The AVX-512 variant replaces these steps. short_codes is for bfloat16 without NaN and a short scale.
// If past_caches is true, `codes` is aligned to 32 bytes.
struct Float8Parts {
  static uint32_t largest_bits(uint32_t dtype, const char* from, int64_t count) {
    return largest_magnitude_bits(dtype, from, count);
  }
  template <SmallFloat kFormat>
  static void short_codes(const char* from, int64_t next_bytes, int64_t count, float plain_scale,
                          bool past_caches, uint8_t* codes) {
    bf16_float8_codes<kFormat>(from, next_bytes, count, plain_scale, past_caches, codes);
  }
};

using Float8Codes = void (*)(const char* from, int64_t count, float plain_scale, uint8_t* codes);

template <SmallFloat kFormat>
Float8Codes float8_codes_of(uint32_t dtype) {
  if (dtype == QCTS_F32) return float8_codes<kFormat, QCTS_F32>;
  return dtype == QCTS_F16 ? float8_codes<kFormat, QCTS_F16> : float8_codes<kFormat, QCTS_BF16>;
}

template <class Parts>
bool has_nan(uint32_t dtype, const char* from, int64_t count) {
  const float largest = float_of_bits(dtype, Parts::largest_bits(dtype, from, count));
  return largest != largest;
}

// Quantizes the elements [k, k + count) of a row. They share a scale.
template <class Parts>
void quantize_float8_part(const Float8Task& task, Float8Codes plain, int64_t row, int64_t k, int64_t count,
                          float scale, bool past_caches, uint8_t* codes) {
  const int64_t elem_bytes = dtype_bytes(task.from.dtype);
  const char* from = task.from.row(row) + k * elem_bytes;
  // A scale computed from x is NaN if x contains a NaN. A given scale says nothing about x.
  if (is_plain_scale(scale) && !(task.is_static && has_nan<Parts>(task.from.dtype, from, count))) {
    if (task.from.dtype != QCTS_BF16 || !is_short_scale(scale)) return plain(from, count, scale, codes);
    const auto convert = task.format == SmallFloat::e4m3 ? Parts::template short_codes<SmallFloat::e4m3>
                                                         : Parts::template short_codes<SmallFloat::e5m2>;
    return convert(from, task.from.ld_bytes, count, scale, past_caches, codes);
  }
  for (int64_t i = 0; i < count; ++i)
    codes[i] = float8_code(task.format,
                           _mm256_cvtss_f32(load_some(task.from.dtype, from + i * elem_bytes, 1)), scale);
}

[[maybe_unused]] Float8Codes plain_float8_codes(const Float8Task& task) {
  return task.format == SmallFloat::e4m3 ? float8_codes_of<SmallFloat::e4m3>(task.from.dtype)
                                         : float8_codes_of<SmallFloat::e5m2>(task.from.dtype);
}

// Returns the scales of eight blocks of bfloat16. They are computed like float8_scale in that dtype.
[[maybe_unused]] __m256 eight_float8_scales(const Float8Task& task, __m256 largest) {
  const auto replaced = [](__m256 value, __m256 by, __m256 where) {
    return _mm256_blendv_ps(value, by, where);
  };
  const __m256 min = _mm256_set1_ps(task.min), max = _mm256_set1_ps(task.max);
  largest = replaced(largest, min, _mm256_cmp_ps(largest, min, _CMP_LT_OQ));
  largest = replaced(largest, max, _mm256_cmp_ps(largest, max, _CMP_GT_OQ));
  const __m256 format_max = _mm256_set1_ps(task.format == SmallFloat::e4m3 ? 448.0f : 57344.0f);
  return widen_bf16(to_bf16(_mm256_div_ps(largest, format_max)));
}

// Quantizes groups of kCols elements of a row of bfloat16,
// eight at a time, and returns the number of these groups.
// A single group waits for its reduction and two divisions, which take longer than the codes of 32 elements.
template <SmallFloat kFormat, int64_t kCols>
int64_t quantize_bf16_groups(const Float8Task& task, int64_t row, bool past_caches) {
  const char* from = task.from.row(row);
  int64_t first = 0;
  for (; first + kLanes <= task.across(); first += kLanes) {
    __m256i tops[kLanes];
#pragma GCC unroll 8
    for (int64_t g = 0; g < kLanes; ++g)
      tops[g] = largest_bits<QCTS_BF16, 2 * kCols>(from + 2 * (first + g) * kCols);
    const __m256 scale = eight_float8_scales(task, reduce_eight<QCTS_BF16>(tops, unsigned_max<QCTS_BF16>));
    alignas(32) float scales[kLanes], factors[kLanes];
    _mm256_store_ps(scales, scale);
    _mm256_store_ps(factors, _mm256_div_ps(_mm256_set1_ps(kShortUnit<kFormat>), scale));
    std::memcpy(task.scales + 4 * (row * task.across() + first), scales, sizeof scales);
    for (int64_t g = 0; g < kLanes; ++g) {
      const int64_t k = (first + g) * kCols;
      uint8_t* codes = task.codes + row * task.k + k;
      if (!is_short_scale(scales[g])) {
        quantize_float8_part<Float8Parts>(task, plain_float8_codes(task), row, k, kCols, scales[g],
                                          past_caches, codes);
        continue;
      }
      const __m256 factor = _mm256_set1_ps(factors[g]);
#pragma GCC unroll 4
      for (int64_t i = 0; i < kCols; i += 32) {
        _mm_prefetch(from + task.from.ld_bytes + 2 * (k + i), _MM_HINT_T0);
        store32(codes + i, bf16_32_codes<kFormat>(from + 2 * (k + i), factor), past_caches);
      }
    }
  }
  return first;
}

using Float8Groups = int64_t (*)(const Float8Task& task, int64_t row, bool past_caches);
template <SmallFloat kFormat>
Float8Groups bf16_groups_of(int64_t cols) {
  return cols == 32    ? quantize_bf16_groups<kFormat, 32>
         : cols == 64  ? quantize_bf16_groups<kFormat, 64>
         : cols == 128 ? quantize_bf16_groups<kFormat, 128>
                       : nullptr;
}
// Returns the function for blocks within one row that have bfloat16 scales,
// or null if there is none for this size.
[[maybe_unused]] Float8Groups bf16_groups_of(const Float8Task& task) {
  if (task.from.dtype != QCTS_BF16 || task.scale_dtype != QCTS_BF16 || task.block_rows != 1) return nullptr;
  return task.format == SmallFloat::e4m3 ? bf16_groups_of<SmallFloat::e4m3>(task.block_cols)
                                         : bf16_groups_of<SmallFloat::e5m2>(task.block_cols);
}

// Quantizes block `at` of a band in two passes over its elements.
template <class Parts>
void quantize_float8_block(const Float8Task& task, int64_t band, int64_t at, Float8Codes plain,
                           bool past_caches) {
  const int64_t begin = band * task.block_rows, end = begin + task.block_rows, k = at * task.block_cols;
  const int64_t elem_bytes = dtype_bytes(task.from.dtype);
  uint32_t bits = 0;
  for (int64_t row = begin; row < end; ++row) {
    const uint32_t mine =
        Parts::largest_bits(task.from.dtype, task.from.row(row) + k * elem_bytes, task.block_cols);
    bits = mine > bits ? mine : bits;
  }
  const float scale = float8_scale(task, float_of_bits(task.from.dtype, bits));
  store_scale(task, band * task.across() + at, scale);
  for (int64_t row = begin; row < end; ++row)
    quantize_float8_part<Parts>(task, plain, row, k, task.block_cols, scale, past_caches,
                                task.codes + row * task.k + k);
}

template <class Parts>
void quantize_float8_bands(const Float8Task& task, int64_t first, int64_t last) {
  const Float8Codes plain = plain_float8_codes(task);
  const Float8Groups groups = bf16_groups_of(task);
  const bool past_caches = is_past_caches(task.codes, task.from.rows * task.k, task.block_cols);
  for (int64_t band = first; band < last; ++band) {
    if (task.one_scale()) {
      quantize_float8_part<Parts>(task, plain, band, 0, task.k, load_scale(task, 0), past_caches,
                                  task.codes + band * task.k);
      continue;
    }
    for (int64_t at = groups == nullptr ? 0 : groups(task, band, past_caches); at < task.across(); ++at)
      quantize_float8_block<Parts>(task, band, at, plain, past_caches);
  }
  _mm_sfence();
}

template <class Parts>
void quantize_float8_problem(const qcts_problem* p) {
  quantize_float8(*p, largest_of, quantize_float8_bands<Parts>);
}

}  // namespace
}  // namespace qcts::avx2
