// SPDX-License-Identifier: BSD-3-Clause
// W8A8 for the AVX2 variants of `linear`: x is quantized to int8 at run time (kernels/avx2/int8_linear.h).
// At m = 1, reading one byte per weight limits the speed.
// A pair of k takes 128 bytes; the two codes of a column are adjacent.
#pragma once

#include "kernels/avx2/int8_linear.h"

namespace qcts::avx2 {
namespace {

// CodesOfX is FullRange or ReducedRange. If kTensor is true, all rows of the weight share a scale.
template <class CodesOfX, bool kTensor>
struct Int8Dyn {
  using Codes = CodesOfX;
  static constexpr int kStepPairs = 1, kStepBytes = 2 * kColumns;
  static constexpr bool kOneScale = kTensor;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static uint32_t scale_dtype(const qcts_problem&) { return QCTS_F32; }
  static RowRecipe recipe(const qcts_problem& p) { return int8_row_recipe(p); }

  [[gnu::always_inline]] static __m256i decode(const uint8_t* at, int vector, int) {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + vector * 2 * kLanes)));
  }

  static void pack_group(const qcts_problem& p, int64_t first_n, int64_t columns, int64_t, uint8_t* codes) {
    const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata")) + first_n * p.k;
    for (int64_t k0 = 0; k0 < p.k; k0 += 128)
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t k = k0; k < p.k && k < k0 + 128; ++k)
          codes[k / 2 * kStepBytes + 2 * c + k % 2] = qdata[c * p.k + k];
  }
};

template <const qcts_kernel& kKernel, class CodesOfX, bool kTensor>
constexpr qcts_kernel int8_dyn_of(const char* scheme) {
  return int8_linear_of<kKernel, Int8Dyn<CodesOfX, kTensor>>(
      scheme,
      "codes widened to 16 bits in registers up to m = 2, else to a panel, exact integer sums; bound by "
      "reading weights, then by integer multiply-adds");
}

}  // namespace
}  // namespace qcts::avx2
