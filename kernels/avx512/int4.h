// SPDX-License-Identifier: BSD-3-Clause
// int4 weights with a scale and a floating-point zero for each group, for the AVX-512 variants of `linear`.
// y is the sum over groups of scale * sum(x * code) + zero * sum(x), plus bias.
// Codes are -8 to 7 and are looked up (kernels/avx512/nibble_lut.h).
// Scale and zero stay outside the inner loop:
// they act on the two sums of a group, and all columns share the sums of x.
// A block of 64 columns holds the words of the codes of each group,
// followed by 64 scales and 64 zeros in the weight's dtype.
#pragma once

#include "kernels/avx512/nibble_lut.h"
#include "kernels/families/int4_planes.h"

namespace qcts::avx512 {
namespace {

alignas(64) constexpr float kInt4Floats[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};

// Source is one of the structs of kernels/families/int4_planes.h.
template <class Source>
struct Int4Words {
  static constexpr int kStep = kWordStep, kBytesPerK = kWordBytesPerK;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = true;

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t scale_bytes(const qcts_problem& p) { return 2 * kColumns * dtype_bytes(p.w_dtype); }
  static float factor(const uint8_t*) { return 1; }

  static __m512 decode(const uint8_t*, const uint8_t* at, int vector, int i) {
    return look_up_words(kInt4Floats, at, vector, i);
  }
  static void scales(const qcts_problem& p, const uint8_t* at, int vector, __m512* scale, __m512* zero) {
    const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
    *scale = load16(p.w_dtype, at + vector * kLanes * bytes);
    *zero = load16(p.w_dtype, at + (kColumns + vector * kLanes) * bytes);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Int4Words>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    put_int4_groups(Source(p), first_n, group_bytes<Int4Words>(p), p.group * kBytesPerK, put_nibbles, out);
  }
};

}  // namespace
}  // namespace qcts::avx512
