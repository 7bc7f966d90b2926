// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/fixed/linear.h: 8-bit codes, multiplied as 16-bit words in 256-bit vectors.
//
// vpmaddwd computes 16 products of words and adds neighbouring products in 32 bits.
// Codes are widened as they are read. x in fixed point already consists of words.
// With the widening and the addition, 16 codes of one row take 3 operations. With floats, they take 6.
// Each further row takes 2 operations, as with floats, but both operations of floats are multiplications.
// One thread of an EPYC Zen 3 took these times for 1024 x 4096 in cache, first with floats, then with words:
//   m = 1: 224 and 99 us; m = 2: 315 and 148 us; m = 16: 1717 and 1100 us; m = 64: 6250 and 4600 us
//
// VPDPWSSD multiplies and adds in one instruction.
// VPDPBUSD needs as many products for a term (for the high bytes and for the low bytes of x),
// but no widening. VPDPBUSD has twice as many sums, so one row takes two passes over 16 KiB.
// One thread of an EPYC Zen 5 took these times for 1024 x 4096 cold with 256 bits,
// first with bytes, then with words:
//   m = 1: 142 and 135 us; m = 2: 169 and 139 us; m = 4: 255 and 231 us
//   m = 16: 741 and 750 us; m = 64: 2940 and 3310 us
#pragma once

#include "kernels/avx2/byte_products.h"
#include "kernels/fixed/linear.h"

namespace qcts::avx2 {
namespace {

// Products::dot_pairs(sum, weights, x) adds two products of words to each 32-bit lane of `sum`.
template <class Products>
struct WordDotsOf {
  static constexpr FixedValues kValues = FixedValues::words;
  static constexpr int kTerms = 6;  // registers hold 12 sums, 2 vectors of codes, one of x

  static constexpr int vectors_of(int terms) { return terms == 1 ? 8 : terms == 2 ? 4 : 2; }

  static __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static __m256i widened(const uint8_t* codes) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
  }

  // Adds the products of M terms to `sums`, or sets `sums` to them if kAdds is false.
  // Takes V vectors of columns at a time and prefetches kAhead bytes ahead.
  template <int M, int kAhead, bool kAdds>
  [[gnu::noinline]] static void multiply_some(const uint8_t* codes, int64_t steps, const int8_t* const* x,
                                              fixed::Sums sums) {
    constexpr int V = vectors_of(M);
    for (int first = 0; first < kVectors; first += V) {
      __m256i sum[M][V];
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          sum[m][v] = kAdds ? load(&sums[m][(first + v) * kLanes]) : _mm256_setzero_si256();
      Share<kAhead, kVectors / V, fixed::kStepBytes / 2> share(codes, 2 * steps, first / V);
      const uint8_t* at = codes;
      for (int64_t pair = 0; pair < 2 * steps; ++pair, at += fixed::kStepBytes / 2) {
        share.fetch();
        __m256i weights[V];
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v) weights[v] = widened(at + (first + v) * 2 * kLanes);
#pragma GCC unroll 8
        for (int m = 0; m < M; ++m) {
          const __m256i two = broadcast_four(x[m] + 4 * pair);
#pragma GCC unroll 8
          for (int v = 0; v < V; ++v) sum[m][v] = Products::dot_pairs(sum[m][v], weights[v], two);
        }
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          _mm256_storeu_si256(reinterpret_cast<__m256i*>(&sums[m][(first + v) * kLanes]), sum[m][v]);
    }
  }

  template <int M>
  static void multiply_terms(const uint8_t* codes, int64_t steps, const int8_t* const* x, fixed::Sums sums) {
    with_ahead<vectors_of(M) == kVectors>(
        [=](auto ahead) { multiply_some<M, ahead, false>(codes, steps, x, sums); });
  }
  static void multiply(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count,
                       fixed::Sums sums) {
    constexpr decltype(&multiply_terms<1>) kExactly[kTerms] = {multiply_terms<1>, multiply_terms<2>,
                                                               multiply_terms<3>, multiply_terms<4>,
                                                               multiply_terms<5>, multiply_terms<6>};
    kExactly[count - 1](codes, steps, x, sums);
  }
};

struct WordProducts {
  [[gnu::always_inline]] static __m256i dot_pairs(__m256i sum, __m256i weights, __m256i x) {
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, weights));
  }
};
using WordDots = WordDotsOf<WordProducts>;

}  // namespace
}  // namespace qcts::avx2
