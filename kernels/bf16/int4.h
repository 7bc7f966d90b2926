// SPDX-License-Identifier: BSD-3-Clause
// int4 weights with a scale and a floating-point zero for each group,
// for the variants of `linear` that multiply pairs of bfloat16.
// y is the sum over groups of scale * sum(x * code) + zero * sum(x), plus bias.
// Codes are -8 to 7. Scale and zero act on the two sums of a group, and all columns share the sums of x.
// A block of 64 columns holds the codes of each group,
// followed by 64 scales and 64 zeros in the weight's dtype.
#pragma once

#include "kernels/bf16/codes.h"
#include "kernels/families/int4_planes.h"

namespace qcts::bf16 {
namespace {

// Source is one of the structs of kernels/families/int4_planes.h.
template <class Source>
struct Int4Linear {
  static constexpr int kStep = kNibbleStep, kBytesPerK = kNibbleBytesPerK;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = true;

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t scale_bytes(const qcts_problem& p) { return 2 * kColumns * dtype_bytes(p.w_dtype); }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int pair) {
    return look_up_nibbles(kInt4Table, at, vector, pair);
  }
  [[gnu::always_inline]] static void scales(const qcts_problem& p, const uint8_t* at, int vector,
                                            __m512* scale, __m512* zero) {
    const int64_t bytes = p.w_dtype == QCTS_F32 ? 4 : 2;
    *scale = avx512::load16(p.w_dtype, at + vector * kLanes * bytes);
    *zero = avx512::load16(p.w_dtype, at + (kColumns + vector * kLanes) * bytes);
  }
  static void specialize(const uint8_t*, const auto& use) { use(Int4Linear()); }

  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    put_int4_groups(Source(p), first_n, layout.group_bytes, layout.padded_group * kBytesPerK, put_nibbles,
                    out);
  }
};

}  // namespace
}  // namespace qcts::bf16
