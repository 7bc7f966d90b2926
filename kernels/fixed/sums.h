// SPDX-License-Identifier: BSD-3-Clause
// Epilogues of kernels/fixed/linear.h.
// An epilogue applies scales to the integer sums of a part and to its leftover floats.
// linear.h lists the members of a Scheme.
#pragma once

#include "kernels/avx2/outputs.h"
#include "kernels/fixed/rows.h"

namespace qcts::fixed {
namespace {

using avx2::FixedPart;
using avx2::FixedRows;
using avx2::FixedValues;
using avx2::kColumns;
using avx2::kLanes;
using avx2::kVectors;

constexpr int kStepBytes = 256;  // size in bytes of a step, which holds a few values of k of all columns

// Adds scale * value to the total, or only the value if scales act later.
// `scale` is not read from Scales here, because the compiler must assume that a store to a total changes it.
template <class Scheme>
[[gnu::always_inline]] inline void add_scaled(const float* scale, __m256 value, float* total) {
  const __m256 before = _mm256_loadu_ps(total);
  _mm256_storeu_ps(total, Scheme::kLateScales ? _mm256_add_ps(value, before)
                                              : _mm256_fmadd_ps(_mm256_loadu_ps(scale), value, before));
}

// Adds step * (sum of v * code - sum of v * offset). Starting the sums at the offsets would be slower.
// A 512-bit load from two 256-bit stores waits until both stores are in the cache.
// The stores wait for everything that memory supplies before them.
// int4 g128 at m = 1 of 4096 x 4096 cold, on one thread of an EPYC Zen 5,
// then reads at 0.65 of the speed of a plain stream, instead of 0.70 to 0.78.
template <class Scheme>
void term_epilogue(const uint8_t* header, const float* scale, float step, int32_t sum_of_v,
                   const int32_t* sum, float* total) {
  const __m256 steps = _mm256_set1_ps(step);
#pragma GCC unroll 8
  for (int n = 0; n < kColumns; n += kLanes) {
    const __m256i of_codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sum + n));
    const __m256i whole = _mm256_add_epi32(of_codes, Scheme::minus_offsets(header, n, sum_of_v));
    add_scaled<Scheme>(scale + n, _mm256_mul_ps(_mm256_cvtepi32_ps(whole), steps), total + n);
  }
}

// Adds the sum of the leftover floats of a part.
template <class Scheme>
void leftover_epilogue(const uint8_t* header, const float* scale, const uint8_t* codes, const float* left,
                       const uint8_t* left_at, int count, float* total) {
  __m256 sums[kVectors] = {};
  for (int i = 0; i < count; ++i) {
    const int k = left_at[i];
    const uint8_t* at = codes + k / Scheme::kStepK * kStepBytes;
    const __m256 x = _mm256_set1_ps(left[i]);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const __m256i code = Scheme::codes(at, k % Scheme::kStepK, v);
      const __m256i weight = _mm256_sub_epi32(code, Scheme::offsets(header, v * kLanes));
      sums[v] = _mm256_fmadd_ps(x, _mm256_cvtepi32_ps(weight), sums[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < kVectors; ++v) add_scaled<Scheme>(scale + v * kLanes, sums[v], total + v * kLanes);
}

template <class Scheme>
void group_epilogue(const float* zero, const float* x_sum, float* total) {
  if (!Scheme::kHasZeros) return;
  const __m256 sum = _mm256_set1_ps(*x_sum);
#pragma GCC unroll 8
  for (int n = 0; n < kColumns; n += kLanes)
    _mm256_storeu_ps(total + n, _mm256_fmadd_ps(_mm256_loadu_ps(zero + n), sum, _mm256_loadu_ps(total + n)));
}
template <class Scheme>
void row_epilogue(const float* scale, float* total) {
  if (!Scheme::kLateScales) return;
#pragma GCC unroll 8
  for (int n = 0; n < kColumns; n += kLanes)
    _mm256_storeu_ps(total + n, _mm256_mul_ps(_mm256_loadu_ps(scale + n), _mm256_loadu_ps(total + n)));
}

}  // namespace
}  // namespace qcts::fixed
