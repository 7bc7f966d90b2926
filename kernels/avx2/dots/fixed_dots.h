// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/fixed/linear.h, for 4-bit codes on processors without a byte dot product.
//
// vpmaddubsw multiplies 32 pairs of bytes and adds neighbouring products in 16 bits.
// Eight sums of two products of 15 and -128 are -30720 and still fit.
// So the products of 32 values of k of a column are added in 16 bits,
// separately for the high bytes and the low bytes of x.
// Then one vpmaddwd for each, by 256 and by 1, widens them to 32 bits.
// 64 codes of a row take 3 operations to separate the nibbles, 4 products, 4 additions and a quarter of 4:
// 12 in all. Floats take 19 operations to decode and 8 to multiply.
#pragma once

#include "kernels/avx2/byte_products.h"
#include "kernels/fixed/linear.h"

namespace qcts::avx2 {
namespace {

struct FixedNibbleDots {
  static constexpr FixedValues kValues = FixedValues::bytes;
  static constexpr int kTerms = 3;  // registers hold 12 sums, 2 vectors of codes, 1 of x, 1 of products
  static constexpr int kMaxSteps = 4;

  static constexpr int vectors_of(int terms) { return terms == 1 ? 4 : 2; }
  template <int kAhead, int V>
  using PassShare = Share<kAhead, fixed::kVectors / V, fixed::kStepBytes>;

  static __m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }

  // *sum += 256 * high + low
  [[gnu::always_inline]] static void widen(__m256i high, __m256i low, int32_t* sum) {
    const __m256i of_high = _mm256_madd_epi16(high, _mm256_set1_epi16(256));
    const __m256i of_low = _mm256_madd_epi16(low, _mm256_set1_epi16(1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sum),
                        _mm256_add_epi32(_mm256_add_epi32(load(sum), of_high), of_low));
  }

  // For one term. Codes are loaded once for both nibbles. x is loaded once for V vectors of columns.
  template <int V, int kSteps, int kAhead>
  [[gnu::always_inline]] static void add_one(const uint8_t* at, int first, const int8_t* x, int32_t* sum,
                                             PassShare<kAhead, V>& share) {
    __m256i high[V], low[V];
#pragma GCC unroll 8
    for (int step = 0; step < kSteps; ++step, at += fixed::kStepBytes, x += 16) {
      share.fetch();
      const __m256i high_0 = broadcast_four(x), low_0 = broadcast_four(x + 4);
      const __m256i high_4 = broadcast_four(x + 8), low_4 = broadcast_four(x + 12);
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        const __m256i bytes = load(at + (first + v) * 4 * kLanes), mask = _mm256_set1_epi8(15);
        const __m256i codes = _mm256_and_si256(bytes, mask);
        high[v] = step == 0 ? _mm256_maddubs_epi16(codes, high_0) : add_pairs(high[v], codes, high_0);
        low[v] = step == 0 ? _mm256_maddubs_epi16(codes, low_0) : add_pairs(low[v], codes, low_0);
        const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), mask);
        high[v] = add_pairs(high[v], upper, high_4);
        low[v] = add_pairs(low[v], upper, low_4);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < V; ++v) widen(high[v], low[v], sum + (first + v) * kLanes);
  }

  template <int M, int V, int kSteps, int kAhead>
  [[gnu::always_inline]] static void add_some(const uint8_t* at, int first, const int8_t* const* x,
                                              int64_t x_at, fixed::Sums sums, PassShare<kAhead, V>& share) {
    __m256i high[M][V], low[M][V];
#pragma GCC unroll 8
    for (int quad = 0; quad < 2 * kSteps; ++quad) {
      const uint8_t* step = at + quad / 2 * fixed::kStepBytes;
      if (quad % 2 == 0) share.fetch();
      __m256i codes[V];
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) {
        codes[v] = load(step + (first + v) * 4 * kLanes);
        if (quad % 2 == 1) codes[v] = _mm256_srli_epi16(codes[v], 4);
        codes[v] = and_memory(codes[v], kNibbles);
      }
#pragma GCC unroll 8
      for (int m = 0; m < M; ++m) {
        const int8_t* four = x[m] + x_at + 8 * quad;
        const __m256i x_high = broadcast_four(four);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          high[m][v] =
              quad == 0 ? _mm256_maddubs_epi16(codes[v], x_high) : add_pairs(high[m][v], codes[v], x_high);
        const __m256i x_low = broadcast_four(four + 4);
#pragma GCC unroll 8
        for (int v = 0; v < V; ++v)
          low[m][v] =
              quad == 0 ? _mm256_maddubs_epi16(codes[v], x_low) : add_pairs(low[m][v], codes[v], x_low);
      }
    }
#pragma GCC unroll 8
    for (int m = 0; m < M; ++m)
#pragma GCC unroll 8
      for (int v = 0; v < V; ++v) widen(high[m][v], low[m][v], &sums[m][(first + v) * kLanes]);
  }

  // Adds products to sums: here for one term, below for several terms. Prefetches kAhead bytes ahead.
  template <int kAhead>
  [[gnu::noinline]] static void add_row(const uint8_t* codes, int64_t steps, const int8_t* x, int32_t* sum) {
    constexpr int V = vectors_of(1);
    for (int first = 0; first < fixed::kVectors; first += V) {
      PassShare<kAhead, V> share(codes, steps, first / V);
      int64_t step = 0;
      for (; step + kMaxSteps <= steps; step += kMaxSteps)
        add_one<V, kMaxSteps, kAhead>(codes + step * fixed::kStepBytes, first, x + 16 * step, sum, share);
      for (; step < steps; ++step)
        add_one<V, 1, kAhead>(codes + step * fixed::kStepBytes, first, x + 16 * step, sum, share);
    }
  }
  template <int M, int kAhead>
  [[gnu::noinline]] static void add_rows(const uint8_t* codes, int64_t steps, const int8_t* const* x,
                                         fixed::Sums sums) {
    constexpr int V = vectors_of(M);
    for (int first = 0; first < fixed::kVectors; first += V) {
      PassShare<kAhead, V> share(codes, steps, first / V);
      int64_t step = 0;
      for (; step + kMaxSteps <= steps; step += kMaxSteps)
        add_some<M, V, kMaxSteps, kAhead>(codes + step * fixed::kStepBytes, first, x, 16 * step, sums, share);
      for (; step < steps; ++step)
        add_some<M, V, 1, kAhead>(codes + step * fixed::kStepBytes, first, x, 16 * step, sums, share);
    }
  }

  // Adds the products of M terms to `sums`, or sets `sums` to them if kAdds is false.
  template <int M, int kAhead, bool kAdds>
  static void multiply_some(const uint8_t* codes, int64_t steps, const int8_t* const* x, fixed::Sums sums) {
    if (!kAdds) std::memset(sums, 0, M * sizeof sums[0]);
    if constexpr (M == 1) {
      add_row<kAhead>(codes, steps, x[0], sums[0]);
    } else {
      add_rows<M, kAhead>(codes, steps, x, sums);
    }
  }
  static void multiply(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count,
                       fixed::Sums sums) {
    if (count == 1) return multiply_some<1, kFarBytes, false>(codes, steps, x, sums);
    if (count == 2) return multiply_some<2, kFarBytes, false>(codes, steps, x, sums);
    multiply_some<3, kFarBytes, false>(codes, steps, x, sums);
  }
};

}  // namespace
}  // namespace qcts::avx2
