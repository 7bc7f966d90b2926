// The engine of kernels/fixed_linear.h for VPDPBUSD; every function has internal linkage. It adds four
// products of unsigned codes and signed bytes to a 32-bit sum, the high bytes of x to one and the low to
// another: 4 operations for 64 codes of a row with 256 bits, 2 with 512, and 3 or 1.5 more to take nibbles
// apart. As pairs of bfloat16 64 codes take 2 operations of 512 bits and others that decode them, 10 for
// bytes (kernels/bf16_int8.h), 4 for nibbles (kernels/bf16_codes.h). Never timed: the shapes follow from the
// registers.
#pragma once

#include "kernels/fixed_linear.h"

namespace qcts::vnni {
namespace {

// A Vector is one of kernels/avxvnni_dots.h or avx512vnni_dots.h. kQuads: of 4 k in a step, 2 of nibbles or 1
// of bytes.
template <class Vector, int kQuads>
struct FixedDots {
  static constexpr fixed::FixedValues kValues = fixed::FixedValues::bytes;
  static constexpr int kTerms = 3;  // 24 sums of 512 bits or 12 of 256, 4 or 2 vectors of codes, x
  static constexpr int kAll = fixed::kColumns / Vector::kLanes;

  // sums += products of M terms, V vectors of columns at a time; what lies kAhead bytes ahead is fetched.
  template <int M, int V, int kAhead>
  [[gnu::noinline]] static void multiply_some(const uint8_t* codes, int64_t steps, const int8_t* const* x,
                                              fixed::Sums sums) {
    for (int first = 0; first < kAll; first += V) {
      typename Vector::Ints high[M][V], low[M][V];
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v)
          high[m][v] = Vector::zero(), low[m][v] = Vector::load(&sums[m][(first + v) * Vector::kLanes]);
      const uint8_t* at = codes;
      for (int64_t step = 0; step < steps; ++step, at += fixed::kStepBytes) {
#pragma GCC unroll 4
        for (int line = 0; first == 0 && line < fixed::kStepBytes; line += 64)
          _mm_prefetch(reinterpret_cast<const char*>(at + line + kAhead), _MM_HINT_T0);
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

  template <int kAhead>
  static void multiply_one(const uint8_t* codes, int64_t steps, const int8_t* x,
                           int32_t (&sum)[fixed::kColumns]) {
    multiply_some<1, 4, kAhead>(codes, steps, &x, &sum);
  }
  static void multiply(const uint8_t* codes, int64_t steps, const int8_t* const* x, int count,
                       fixed::Sums sums) {
    constexpr int V = Vector::kLanes / 4;  // of several terms
    if (count == 1) return multiply_some<1, 4, avx2::kPrefetchBytes>(codes, steps, x, sums);
    if (count == 2) return multiply_some<2, V, avx2::kPrefetchBytes>(codes, steps, x, sums);
    multiply_some<3, V, avx2::kPrefetchBytes>(codes, steps, x, sums);
  }
};

}  // namespace
}  // namespace qcts::vnni
