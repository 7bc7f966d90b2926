// SPDX-License-Identifier: BSD-3-Clause
// int4 weights with a scale and a floating-point zero for each group, for `linear` with 256-bit vectors.
// y is the sum over groups of scale * sum(x * code) + zero * sum(x), plus bias. Codes are -8 to 7.
//
// x of 16 bits is multiplied as bytes (kernels/fixed/int4.h), and float32 x is multiplied as floats.
// For floats, codes are looked up (kernels/avx2/nibbles.h).
// Scale and zero stay outside the inner loop:
// they act on the two sums of a group, and all columns share the sums of x.
// A block of 64 columns holds the codes of each group,
// followed by 64 scales and 64 zeros in the weight's dtype.
#pragma once

#include "kernels/avx2/dots/fixed_point_or_f32.h"
#include "kernels/avx2/nibbles.h"
#include "kernels/fixed/int4.h"

namespace qcts::avx2 {
namespace {

// bfloat16 values of -8 .. 7, indexed by the code plus 8. The low bytes come first, then the high bytes.
alignas(32) constexpr uint8_t kInt4Table[32] = {
    0x00, 0xE0, 0xC0, 0xA0, 0x80, 0x40, 0x00, 0x80, 0x00, 0x80, 0x00, 0x40, 0x80, 0xA0, 0xC0, 0xE0,
    0xC1, 0xC0, 0xC0, 0xC0, 0xC0, 0xC0, 0xC0, 0xBF, 0x00, 0x3F, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40};

// Source is one of the structs of kernels/families/int4_planes.h.
template <class Source>
struct Int4Linear {
  static constexpr int kStep = kNibbleStep, kWide = kNibbleWide, kBytesPerK = kNibbleBytesPerK,
                       kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = true;

  static int64_t group(const qcts_problem& p) { return p.group; }
  static int64_t scale_bytes(const qcts_problem& p) { return 2 * kColumns * dtype_bytes(p.w_dtype); }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int i,
                                            __m256 (&out)[kWide]) {
    look_up_nibbles(nibble_table(kInt4Table), at, vector, i, out);
  }
  static void scales(const qcts_problem& p, const uint8_t* at, float* scale, float* zero) {
    widen_scales(p.w_dtype, at, scale);
    widen_scales(p.w_dtype, at + kColumns * dtype_bytes(p.w_dtype), zero);
  }
  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Int4Linear>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    put_int4_groups(Source(p), first_n, group_bytes<Int4Linear>(p), p.group * kBytesPerK, put_nibbles, out);
  }
};

template <const qcts_kernel& kKernel, class Source, class Dots>
constexpr qcts_kernel int4_linear_of(const char* scheme, const char* variant, const char* description) {
  return fixed_point_or_f32_of<kKernel, fixed::Int4Groups<Source, Dots>, Int4Linear<Source>>(scheme, variant,
                                                                                             description);
}

}  // namespace
}  // namespace qcts::avx2
