// The engine of kernels/fixed_linear.h for VPDPBUSD of 256 bits; every function has internal linkage. It adds
// four products of bytes to a 32-bit sum, the high bytes of x to one and the low to another: 3 operations to
// take 64 codes apart and 4 to multiply them. Never timed: the shapes follow from 16 registers.
#pragma once

#include "kernels/avx2_int4.h"

namespace qcts::avxvnni {
namespace {

using avx2::kLanes;

struct FixedDots {
  static constexpr int kTerms = 3;  // 12 sums, 2 vectors of codes, one of x

  static __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static __m256i broadcast(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
  }

  // sums += products of M terms, V vectors of columns at a time; what lies kAhead bytes ahead is fetched.
  template <int M, int V, int kAhead>
  [[gnu::noinline]] static void multiply_some(const uint8_t* codes, int64_t steps, const int8_t* const* x,
                                              fixed::Sums sums) {
    for (int first = 0; first < fixed::kVectors; first += V) {
      __m256i high[M][V] = {}, low[M][V] = {};
      const uint8_t* at = codes;
      for (int64_t step = 0; step < steps; ++step, at += fixed::kStepBytes) {
#pragma GCC unroll 4
        for (int line = 0; first == 0 && line < fixed::kStepBytes; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(at + line + kAhead), _MM_HINT_T0);
#pragma GCC unroll 2
        for (int quad = 0; quad < 2; ++quad) {
          __m256i nibbles[V];
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) {
            const __m256i bytes = load(at + (first + v) * 4 * kLanes);
            nibbles[v] =
                _mm256_and_si256(quad == 0 ? bytes : _mm256_srli_epi16(bytes, 4), _mm256_set1_epi8(15));
          }
#pragma GCC unroll 4
          for (int m = 0; m < M; ++m) {
            const int8_t* eight = x[m] + 16 * step + 8 * quad;
            const __m256i x_high = broadcast(eight), x_low = broadcast(eight + 4);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) {
              high[m][v] = _mm256_dpbusd_avx_epi32(high[m][v], nibbles[v], x_high);
              low[m][v] = _mm256_dpbusd_avx_epi32(low[m][v], nibbles[v], x_low);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          auto* sum = reinterpret_cast<__m256i*>(&sums[m][(first + v) * kLanes]);
          const __m256i both = _mm256_add_epi32(_mm256_slli_epi32(high[m][v], 8), low[m][v]);
          _mm256_storeu_si256(sum, _mm256_add_epi32(load(sum), both));
        }
    }
  }

  template <int kAhead>
  static void multiply_one(const uint8_t* codes, int64_t steps, const int8_t* x,
                           int32_t (&sum)[avx2::kColumns]) {
    multiply_some<1, 4, kAhead>(codes, steps, &x, &sum);
  }
  static void multiply(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count,
                       fixed::Sums sums) {
    if (count == 1) return multiply_some<1, 4, avx2::kPrefetchBytes>(codes, steps, x, sums);
    if (count == 2) return multiply_some<2, 2, avx2::kPrefetchBytes>(codes, steps, x, sums);
    multiply_some<3, 2, avx2::kPrefetchBytes>(codes, steps, x, sums);
  }
};

}  // namespace
}  // namespace qcts::avxvnni
