// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/fixed/linear.h that uses VPDPBUSD.
// The instruction adds four products of unsigned codes and signed bytes to a 32-bit sum.
// The high bytes of x go to one sum and the low bytes to another.
// 64 codes of a row take 4 operations with 256 bits, or 2 with 512. Separating nibbles takes 3 or 1.5 more.
// As pairs of bfloat16, 64 codes take 2 operations of 512 bits, plus decoding:
// 10 for bytes (kernels/bf16/int8.h), 4 for nibbles (kernels/bf16/codes.h).
// An EPYC Zen 4 core starts one operation of either kind per cycle.
// The core took these times for 1024 x 4096 in cache, first with pairs of bfloat16, then with VPDPBUSD:
//   int8: m = 1: 164 and 65 us; m = 4: 240 and 180 us; m = 8: 342 and 365 us; m = 16: 665 and 745 us
//   nibbles in groups of 128: m = 1: 63 and 60 us; m = 4: 156 and 200 us
// With 256 bits, bytes are faster as words (kernels/avx2/dots/word_dots.h).
#pragma once

#include "kernels/fixed/linear.h"

namespace qcts::vnni {
namespace {

// Vector is a struct of kernels/avxvnni/dots.h or kernels/avx512vnni/dots.h.
// A step has kQuads times 4 values of k: kQuads is 2 for nibbles and 1 for bytes.
template <class Vector, int kQuads>
struct FixedDots {
  static constexpr fixed::FixedValues kValues = fixed::FixedValues::bytes;
  static constexpr int kAll = fixed::kColumns / Vector::kLanes;
  // The registers hold 16 sums of 512 bits or 12 of 256. There is room for 24 sums of 512 bits,
  // but GCC 12 spills them: 3 terms by 4 vectors took 1.35 times as long as 3 by 2 (EPYC Zen 4, in cache).
  static constexpr int kTerms = Vector::kLanes == 16 ? 4 : 3, kMaxSums = 4 * kTerms;
  static constexpr int vectors_of(int terms) { return 2 * terms * 4 <= kMaxSums ? 4 : 2; }

  // Adds the products of M terms to `sums`, or sets `sums` to them if kAdds is false.
  // Takes V vectors of columns at a time and prefetches codes kAhead bytes ahead.
  template <int M, int kAhead, bool kAdds>
  [[gnu::noinline]] static void multiply_some(const uint8_t* codes, int64_t steps, const int8_t* const* x,
                                              fixed::Sums sums) {
    constexpr int V = vectors_of(M);
    for (int first = 0; first < kAll; first += V) {
      typename Vector::Ints high[M][V], low[M][V];
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          high[m][v] = Vector::zero(),
          low[m][v] = kAdds ? Vector::load(&sums[m][(first + v) * Vector::kLanes]) : Vector::zero();
      avx2::Share<kAhead, kAll / V, fixed::kStepBytes> share(codes, steps, first / V);
      const uint8_t* at = codes;
      for (int64_t step = 0; step < steps; ++step, at += fixed::kStepBytes) {
        share.fetch();
#pragma GCC unroll 2
        for (int quad = 0; quad < kQuads; ++quad) {
          typename Vector::Ints weights[V];
#pragma GCC unroll 4
          for (int v = 0; v < V; ++v) {
            weights[v] = Vector::load(at + (first + v) * 4 * Vector::kLanes);
            if (quad == 1) weights[v] = Vector::shift_right_4(weights[v]);
            if (kQuads == 2) weights[v] = Vector::low_nibbles(weights[v]);
          }
#pragma GCC unroll 4
          for (int m = 0; m < M; ++m) {
            const int8_t* eight = x[m] + 8 * (kQuads * step + quad);
            const auto x_high = Vector::broadcast(eight), x_low = Vector::broadcast(eight + 4);
#pragma GCC unroll 4
            for (int v = 0; v < V; ++v) {
              high[m][v] = Vector::dot(high[m][v], weights[v], x_high);
              low[m][v] = Vector::dot(low[m][v], weights[v], x_low);
            }
          }
        }
      }
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          Vector::store(&sums[m][(first + v) * Vector::kLanes],
                        Vector::add(Vector::shift_left_8(high[m][v]), low[m][v]));
    }
  }

  template <int M>
  static void multiply_terms(const uint8_t* codes, int64_t steps, const int8_t* const* x, fixed::Sums sums) {
    // Nibbles are always prefetched: the epilogue of a group of 128 takes as long as reading its 4 KiB.
    avx2::with_ahead<kQuads == 1 && vectors_of(M) == kAll>(
        [=](auto ahead) { multiply_some<M, ahead, false>(codes, steps, x, sums); });
  }
  static void multiply(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count,
                       fixed::Sums sums) {
    if (count == 1) return multiply_terms<1>(codes, steps, x, sums);
    if (count == 2) return multiply_terms<2>(codes, steps, x, sums);
    if (count == 3) return multiply_terms<3>(codes, steps, x, sums);
    if constexpr (kTerms == 4) multiply_terms<4>(codes, steps, x, sums);
  }
};

}  // namespace
}  // namespace qcts::vnni
