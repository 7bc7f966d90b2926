// SPDX-License-Identifier: BSD-3-Clause
// NVFP4 weights, for the variants of `linear` that multiply pairs of bfloat16: y = s * sum over blocks of 16
// of scale * sum(x * element), plus bias, where s is the scale of the whole weight, or 1. Elements are looked
// up (kernels/bf16/codes.h). The e4m3 scales are stored as bfloat16, which holds them: a block of 16 k is
// short, and widening bfloat16 takes one shift instead of five operations, for 10 bytes of a column and block
// instead of 9. s acts on the finished sum and rounds once, together with the bias. A block of 64 columns
// holds s, then for each 16 k the codes and 64 scales.
#pragma once

#include "kernels/bf16/codes.h"

namespace qcts::bf16 {
namespace {

struct Nvfp4 : NarrowScales {
  static constexpr int kBlockK = 16;
  static constexpr int kStep = kNibbleStep, kBytesPerK = kNibbleBytesPerK;
  static constexpr int64_t kHeaderBytes = 64;

  static int64_t group(const qcts_problem&) { return kBlockK; }
  static float factor(const uint8_t* header) {
    float whole;
    std::memcpy(&whole, header, 4);
    return whole;
  }
  [[gnu::always_inline]] static __m512i decode(const uint8_t*, const uint8_t* at, int vector, int pair) {
    return look_up_nibbles(kE2m1Table, at, vector, pair);
  }
  static void specialize(const uint8_t*, const auto& use) { use(Nvfp4()); }

  static void pack_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const Nvfp4Planes planes(p);
    planes.put_whole_scale(out);
    put_blocks(planes, first_n, layout.group_bytes, put_nibbles, out + kHeaderBytes);
  }
};

}  // namespace
}  // namespace qcts::bf16
