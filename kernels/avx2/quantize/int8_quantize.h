// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of int8_row, for the AVX2 and AVX-512 variants.
// Results equal those of quantize/int8_row_scalar.cc.
//
// Reading the row and writing the codes limit the speed.
// The second pass finds the row in L1 or L2, and 32 codes cost about 20 operations.
// Meanwhile the next rows are prefetched (fetch_rows), because the hardware prefetcher stops at every page.
// If only the next row is prefetched, 4096 x 4096 on one thread takes 1.17 times as long,
// and 1.38 times as long with 64-byte vectors (EPYC Zen 5). The conversion rounds, and the two packs clamp.
// A row with NaN or infinity is a special case and has only codes 0.
// The reciprocal of such a row is NaN or 0, and the conversion would turn products into -128.
#pragma once

#include "kernels/avx2/quantize.h"
#include "kernels/avx2/stores.h"

namespace qcts::avx2 {
namespace {

[[gnu::always_inline]] inline __m256i int8_codes(uint32_t dtype, const char* at, __m256 reciprocal) {
  return _mm256_cvtps_epi32(_mm256_mul_ps(load8(dtype, at), reciprocal));
}

// Encodes as much of a row as it can, 32 elements at a time, and returns the number of these elements.
// The AVX-512 variant replaces this step.
struct Int8Codes {
  static uint32_t largest_bits(uint32_t dtype, const char* row, int64_t count) {
    return largest_magnitude_bits(dtype, row, count);
  }
  static int64_t quantize(uint32_t dtype, const char* row, int64_t row_bytes, int64_t k_count,
                          float plain_reciprocal, bool past_caches, int8_t* codes) {
    const __m256 reciprocal = _mm256_set1_ps(plain_reciprocal);
    const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
    int64_t k = 0;
    for (; k + 32 <= k_count; k += 32) {
      const char* at = row + k * bytes;
      bytes == 4 ? fetch_rows<128>(at, row_bytes) : fetch_rows<64>(at, row_bytes);
      const __m256i narrow = narrow_to_bytes(
          int8_codes(dtype, at, reciprocal), int8_codes(dtype, at + 8 * bytes, reciprocal),
          int8_codes(dtype, at + 16 * bytes, reciprocal), int8_codes(dtype, at + 24 * bytes, reciprocal));
      store32(codes + k, narrow, past_caches);
    }
    return k;
  }
};

template <class Codes>
void quantize_int8_codes(uint32_t dtype, const char* row, int64_t row_bytes, int64_t k_count, float scale,
                         bool past_caches, int8_t* codes) {
  const float plain_reciprocal = 1.0f / scale;
  const __m256 reciprocal = _mm256_set1_ps(plain_reciprocal);
  const int64_t bytes = dtype == QCTS_F32 ? 4 : 2;
  for (int64_t k = Codes::quantize(dtype, row, row_bytes, k_count, plain_reciprocal, past_caches, codes);
       k < k_count; k += kLanes) {
    const int64_t some = k_count - k < kLanes ? k_count - k : kLanes;
    const __m256i wide =
        _mm256_cvtps_epi32(_mm256_mul_ps(load_some(dtype, row + k * bytes, some), reciprocal));
    int8_t narrow[32];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(narrow), narrow_to_bytes(wide, wide, wide, wide));
    std::memcpy(codes + k, narrow, static_cast<size_t>(some));
  }
}

template <class Codes>
void quantize_int8_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(out_plane(p, "qdata"));
  auto* scales = static_cast<char*>(out_plane(p, "scale"));
  auto* zero_points = static_cast<int8_t*>(out_plane(p, "zero_point"));
  const bool past_caches = is_past_caches(qdata, p.n * p.k, p.k);
  for (int64_t n = first; n < last; ++n) {
    const char* row = static_cast<const char*>(p.x) + n * p.ldx_bytes;
    const float absmax = float_of_bits(p.w_dtype, Codes::largest_bits(p.w_dtype, row, p.k));
    float scale = round_once(p.w_dtype, absmax / 127.5f);
    if (scale < 0x1p-23f) scale = 0x1p-23f;
    const bool finite = scale - scale == 0;
    if (finite) {
      quantize_int8_codes<Codes>(p.w_dtype, row, p.ldx_bytes, p.k, scale, past_caches, qdata + n * p.k);
    } else {
      std::memset(qdata + n * p.k, 0, static_cast<size_t>(p.k));
    }
    std::memcpy(scales + 4 * n, &scale, 4);
    zero_points[n] = 0;
  }
}

}  // namespace
}  // namespace qcts::avx2
