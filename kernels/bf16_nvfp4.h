// NVFP4 weights for the variants of linear that multiply pairs of bfloat16, and for nothing else: every
// function has internal linkage. y = s * sum over blocks of 16 of scale * sum(x * element), plus bias; s is
// the scale of the whole weight, or 1. Elements are looked up (kernels/bf16_codes.h). The e4m3 scales are
// stored as bfloat16, which holds them: 16 k are soon over, and widening takes one shift instead of five
// operations, for 2 bytes more to 8. s acts on the finished sum, in one rounding with the bias. A block of 64
// columns: s, then for each 16 k the codes, then 64 scales.
#pragma once

#include "kernels/bf16_codes.h"

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

  static void prepare_block(const qcts_problem& p, const Layout& layout, int64_t first_n, uint8_t* out) {
    const auto* pairs = static_cast<const uint8_t*>(in_plane(p, "qdata"));
    const auto* scales = static_cast<const uint8_t*>(in_plane(p, "scale"));
    const void* given = in_plane(p, "per_tensor_scale");
    const float one = 1;
    std::memcpy(out, given != nullptr ? given : &one, 4);
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    out += kHeaderBytes;
    for (int64_t g = 0; g < p.k / kBlockK; ++g, out += layout.group_bytes)
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = (first_n + c) * p.k + g * kBlockK;
        for (int64_t k = 0; k < kBlockK; ++k)
          put_nibble(out, c, k, k % 2 == 0 ? pairs[(at + k) / 2] & 15u : pairs[(at + k) / 2] >> 4);
        const uint16_t scale = e4m3_as_bf16(scales[at / kBlockK]);
        std::memcpy(out + kBlockK * kBytesPerK + 2 * c, &scale, 2);
      }
  }
};

}  // namespace
}  // namespace qcts::bf16
