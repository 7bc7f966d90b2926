// SPDX-License-Identifier: BSD-3-Clause
// Multiplies one-byte codes by a scale, for the AVX2 variants of dequantize.
// Writing the result limits the speed. In bfloat16, an element costs one operation if the scale allows it.
// For any other dtype or scale, it costs two.
#pragma once

#include "kernels/avx2/dequantize/e4m3_table.h"
#include "kernels/avx2/float8.h"
#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

// `decode(codes)` returns eight floats. The product is rounded to float32, then to dtype.
template <class Decode>
[[gnu::always_inline]] inline void scale_codes(uint32_t dtype, const uint8_t* codes, int64_t count,
                                               float factor, char* to, const Decode& decode) {
  const __m256 scale = _mm256_set1_ps(factor);
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  int64_t k = 0;
  for (; k + kLanes <= count; k += kLanes)
    store8(dtype, to + k * bytes, _mm256_mul_ps(decode(codes + k), scale));
  if (k == count) return;
  uint8_t rest[kLanes] = {};
  std::memcpy(rest, codes + k, static_cast<size_t>(count - k));
  store_some(dtype, to + k * bytes, _mm256_mul_ps(decode(rest), scale), count - k);
}

constexpr int64_t kWorthATable = 256;  // min. number of codes with one scale for which a table pays off

// True if the scale and the factor of finite_small_float can act as one factor.
// The product is then rounded once.
// It stays a normal number, and its magnitude follows the magnitude of the code.
template <Float8 kFormat>
bool is_one_factor(float scale) {
  return scale >= 0x1p-100f && scale <= 0x1p126f / Float8Bits<kFormat>::kUnit;
}

// Converts 32 codes to bfloat16. None of them may be NaN or infinite.
// In each 16 codes, even and odd codes are moved to their places as magnitudes,
// multiplied, rounded by bf16_rounded and joined in order.
// The conversion takes 34 operations. kernels/avx2/stores.h explains past_caches.
template <Float8 kFormat>
[[gnu::always_inline]] inline void scale_32_floats(const uint8_t* codes, __m256 factor, bool past_caches,
                                                   char* to) {
  using Bits = Float8Bits<kFormat>;
  constexpr int kShift = 23 - Bits::kFractionBits, kSignShift = Bits::kSixBits ? 10 : 8;
  const __m256i sizes = _mm256_set1_epi32(Bits::kMagnitude << kShift), sign = _mm256_set1_epi16(INT16_MIN);
  const auto rounded = [&](__m256i moved) {
    const __m256 size = _mm256_castsi256_ps(_mm256_and_si256(moved, sizes));
    return _mm256_castps_si256(bf16_rounded(_mm256_mul_ps(size, factor)));
  };
  for (int half = 0; half < 2; ++half) {
    const __m256i words =
        _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + 16 * half)));
    const __m256i even = _mm256_srli_epi32(rounded(_mm256_slli_epi32(words, kShift)), 16),
                  odd = rounded(_mm256_slli_epi32(words, kShift - 16));
    const __m256i signs = _mm256_and_si256(_mm256_slli_epi16(words, kSignShift), sign);
    store32(to + 32 * half, _mm256_or_si256(_mm256_or_si256(even, odd), signs), past_caches);
  }
}

// Returns a mask of 32 bytes that is set where a code is NaN or infinite.
template <Float8 kFormat>
[[gnu::always_inline]] inline __m256i special_codes(const uint8_t* codes) {
  if (Float8Bits<kFormat>::kSixBits) return _mm256_setzero_si256();
  const __m256i magnitudes =
      _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes)), _mm256_set1_epi8(0x7F));
  return _mm256_cmpgt_epi8(magnitudes, _mm256_set1_epi8(kFormat == Float8::e4m3 ? 0x7E : 0x7B));
}

template <Float8 kFormat>
[[gnu::noinline]] void scale_any_floats(uint32_t dtype, const uint8_t* codes, int64_t count, float factor,
                                        char* to) {
  scale_codes(dtype, codes, count, factor, to, [](const uint8_t* at) { return small_float<kFormat>(at); });
}

// Converts `groups` consecutive groups of `length` codes each, with float32 scales.
// Codes for which scale_32_floats is wrong are converted again.
template <Float8 kFormat>
void scale_float_groups(uint32_t dtype, const uint8_t* codes, int64_t groups, int64_t length,
                        const void* scales, bool past_caches, char* to) {
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  for (int64_t g = 0; g < groups; ++g, codes += length, to += length * bytes) {
    const float scale = one_element(QCTS_F32, scales, g);
    if (kFormat == Float8::e4m3 && dtype == QCTS_BF16 && length >= kWorthATable && has_e4m3_table(scale)) {
      look_up_e4m3_codes(e4m3_table(scale), codes, length, past_caches, to);
      continue;
    }
    int64_t k = 0;
    if (dtype == QCTS_BF16 && is_one_factor<kFormat>(scale)) {
      const __m256 factor = _mm256_set1_ps(scale * Float8Bits<kFormat>::kUnit);
      __m256i special = _mm256_setzero_si256();
      for (; k + 32 <= length; k += 32) {
        scale_32_floats<kFormat>(codes + k, factor, past_caches, to + 2 * k);
        special = _mm256_or_si256(special, special_codes<kFormat>(codes + k));
      }
      if (_mm256_movemask_epi8(special) != 0) k = 0;
    }
    if (k < length) scale_any_floats<kFormat>(dtype, codes + k, length - k, scale, to + k * bytes);
  }
}
template <Float8 kFormat>
void scale_floats(uint32_t dtype, const uint8_t* codes, int64_t count, float scale, bool past_caches,
                  char* to) {
  scale_float_groups<kFormat>(dtype, codes, 1, count, &scale, past_caches, to);
}

// Converts 32 codes, minus their zero point, to bfloat16.
// In 16-bit lanes, a code is placed in the fraction of 2^23, where additions are exact.
// Unpacking widens the lanes and packing narrows them.
// bf16_rounded rounds the product, so no product may be -0.
// 32 elements cost 32 operations, of which one in four is a load or a store.
template <bool kPastCaches>
[[gnu::always_inline]] inline void scale_32_to_bf16(const int8_t* codes, __m256i below_512, __m256 scale,
                                                    char* to) {
  const __m256i exponent = _mm256_set1_epi16(0x4B00);
  const auto rounded = [&](__m256i bits) {
    const __m256 code = _mm256_sub_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p23f + 512));
    return _mm256_srli_epi32(_mm256_castps_si256(bf16_rounded(_mm256_mul_ps(code, scale))), 16);
  };
  for (int half = 0; half < 2; ++half) {
    const __m256i words =
        _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + 16 * half)));
    const __m256i above = _mm256_sub_epi16(words, below_512);
    store32(to + 32 * half,
            _mm256_packus_epi32(rounded(_mm256_unpacklo_epi16(above, exponent)),
                                rounded(_mm256_unpackhi_epi16(above, exponent))),
            kPastCaches);
  }
}

// Converts codes 32 at a time, as many of `count` as it can, and returns their number.
// The AVX-512 variant replaces this step. below_512_twice holds (zero point - 512) in both halves.
// The factor is in [2^-100, 2^100].
struct Integers32 {
  template <bool kPastCaches>
  [[gnu::always_inline]] static int64_t scale_to_bf16(const int8_t* codes, int64_t count,
                                                      int32_t below_512_twice, float factor, char* to) {
    const __m256i below_512 = _mm256_set1_epi32(below_512_twice);
    const __m256 scale = _mm256_set1_ps(factor);
    int64_t k = 0;
    for (; k + 32 <= count; k += 32) scale_32_to_bf16<kPastCaches>(codes + k, below_512, scale, to + 2 * k);
    return k;
  }
};

template <class Integers, bool kPastCaches>
[[gnu::always_inline]] inline void scale_integers(uint32_t dtype, const int8_t* codes, int64_t count,
                                                  int8_t zero_point, float factor, char* to) {
  int64_t k = 0;
  if (dtype == QCTS_BF16 && factor >= 0x1p-100f && factor <= 0x1p100f) {
    const int32_t below_512 = (zero_point - 512) & 0xFFFF;
    k = Integers::template scale_to_bf16<kPastCaches>(codes, count, below_512 << 16 | below_512, factor, to);
    if (k == count) return;
  }
  const __m256i zero = _mm256_set1_epi32(zero_point);
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  scale_codes(dtype, reinterpret_cast<const uint8_t*>(codes + k), count - k, factor, to + k * bytes,
              [&](const uint8_t* at) {
                const __m256i wide =
                    _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(at)));
                return _mm256_cvtepi32_ps(_mm256_sub_epi32(wide, zero));
              });
}

// Converts eight groups to bfloat16. Each group has a multiple of 32 codes.
// The parameters of the eight groups are computed together:
// one at a time, groups of 32 took 1.4 times as long (AVX-512, EPYC Zen 5).
// Returns false and does nothing if a factor is out of bounds.
template <class Integers, bool kPastCaches>
[[gnu::always_inline]] inline bool scale_eight_groups(__m256 factors, const int8_t* zero_points,
                                                      const int8_t* codes, int64_t length, char* to) {
  const __m256 within = _mm256_and_ps(_mm256_cmp_ps(factors, _mm256_set1_ps(0x1p-100f), _CMP_GE_OQ),
                                      _mm256_cmp_ps(factors, _mm256_set1_ps(0x1p100f), _CMP_LE_OQ));
  if (_mm256_movemask_ps(within) != 0xFF) return false;
  const __m256i zero = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(zero_points)));
  const __m256i below_512 = _mm256_sub_epi32(zero, _mm256_set1_epi32(512));
  alignas(32) float factor[kLanes];
  alignas(32) int32_t below_512_twice[kLanes];
  _mm256_store_ps(factor, factors);
  _mm256_store_si256(reinterpret_cast<__m256i*>(below_512_twice),
                     _mm256_blend_epi16(below_512, _mm256_slli_epi32(below_512, 16), 0xAA));
  for (int g = 0; g < kLanes; ++g, codes += length, to += 2 * length)
    Integers::template scale_to_bf16<kPastCaches>(codes, length, below_512_twice[g], factor[g], to);
  return true;
}

// Converts the int8 codes of row n.
// The parameters of the row begin at `first`, and each serves `length` elements.
template <class Integers, bool kPastCaches>
void dequantize_affine_row(const qcts_problem& p, uint32_t scale_dtype, int64_t n, int64_t first,
                           int64_t length) {
  const auto* codes = static_cast<const int8_t*>(in_plane(p, "qdata")) + n * p.k;
  const auto* zero_points = static_cast<const int8_t*>(in_plane(p, "zero_point"));
  const auto* scales = static_cast<const char*>(in_plane(p, "scale"));
  const uint32_t dtype = p.w_dtype;
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2, scale_bytes = scale_dtype == QCTS_F32 ? 4 : 2;
  const int64_t k_count = p.k, eight = kLanes * length;
  char* row = static_cast<char*>(p.y) + n * p.ldy_bytes;
  int64_t k = 0, at = first;
  if (dtype == QCTS_BF16 && length % 32 == 0)
    for (; k + eight <= k_count; k += eight, at += kLanes)
      if (!scale_eight_groups<Integers, kPastCaches>(load8(scale_dtype, scales + at * scale_bytes),
                                                     zero_points + at, codes + k, length, row + 2 * k))
        break;
  for (; k < k_count; k += length, ++at)
    scale_integers<Integers, kPastCaches>(dtype, codes + k, length, zero_points[at],
                                          one_element(scale_dtype, scales, at), row + k * bytes);
}
template <class Integers>
void dequantize_affine_row(const qcts_problem& p, uint32_t scale_dtype, int64_t n, int64_t first,
                           int64_t length) {
  (is_past_caches(p, length) ? dequantize_affine_row<Integers, true>
                             : dequantize_affine_row<Integers, false>)(p, scale_dtype, n, first, length);
}
template <class Integers>
void dequantize_affine_rows(const qcts_problem& p, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) dequantize_affine_row<Integers>(p, QCTS_F32, n, n, p.k);
}
template <class Integers>
void dequantize_affine_tensor(const qcts_problem& p, int64_t first, int64_t last) {
  for (int64_t n = first; n < last; ++n) dequantize_affine_row<Integers>(p, QCTS_F32, n, 0, p.k);
}
// Converts rows of intx. A group may be the whole row, and scales may have the weight's dtype.
template <class Integers>
void dequantize_affine_groups(const qcts_problem& p, int64_t first, int64_t last) {
  const int64_t length = p.group != 0 ? p.group : p.k;
  const uint32_t dtype = plane_dtype(p.planes, p.n_planes, "scale");
  for (int64_t n = first; n < last; ++n)
    dequantize_affine_row<Integers>(p, dtype, n, n * (p.k / length), length);
}

}  // namespace
}  // namespace qcts::avx2
