// SPDX-License-Identifier: BSD-3-Clause
// NVFP4 weights, for the variants of `linear` that multiply pairs of bfloat16.
// y is s * (sum over blocks of 16 of scale * sum(x * element)), plus bias.
// s is the scale of the whole weight, or 1. Elements are looked up (kernels/bf16/codes.h).
// The e4m3 scales are stored as bfloat16, which holds them.
// A block of 16 values of k is short, and widening bfloat16 takes one shift instead of five operations.
// A column then has 10 bytes per block instead of 9.
// s acts on the finished sum and is rounded once, together with the bias.
// A block of 64 columns begins with s. The codes and 64 scales for every 16 values of k follow.
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
