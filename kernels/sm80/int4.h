// SPDX-License-Identifier: BSD-3-Clause
// Four-bit weights for the frames of `linear`.
#pragma once

#include "kernels/families/entry.h"
#include "kernels/sm80/elements.h"

namespace qcts::sm80 {
namespace {

// The float 2^23 + nibble, minus 2^23 + 8: an integer becomes a float without a conversion, which is slower.
QCTS_DEVICE float minus_8(uint32_t word, int shift) {
  return float_of(and_or(word >> shift, 15, 0x4B000000)) - 8388616.0f;
}

// int4_tinygemm: (code - 8) * scale + zero; the even k in the high nibble; scale and zero adjacent, in
// w_dtype, with those of the next row after them.
struct TinygemmWeight {
  static constexpr int kBits = 4;
  const uint8_t* codes;
  const uint8_t* scale_and_zero;
  int64_t n;
  uint32_t dtype;
  bool pairs_are_aligned;
  explicit TinygemmWeight(const qcts_problem& p)
      : codes(static_cast<const uint8_t*>(in_plane(p, "qdata"))),
        scale_and_zero(static_cast<const uint8_t*>(in_plane(p, "scale_and_zero"))),
        n(p.n),
        dtype(p.w_dtype),
        pairs_are_aligned(reinterpret_cast<uintptr_t>(scale_and_zero) % (2 * dtype_bytes(p.w_dtype)) == 0) {}
  static bool has_aligned_codes(const qcts_problem& p) {
    return p.k % 32 == 0 && is_multiple_of_16(in_plane(p, "qdata"));
  }

  QCTS_DEVICE Words2 parameters(int64_t row, int64_t group) const {
    const int64_t at = 2 * (group * n + row);
    if (dtype == QCTS_F32 && pairs_are_aligned) return load_global<Words2>(scale_and_zero + 4 * at);
    if (pairs_are_aligned) {  // one access instead of two that want the same sectors
      const auto pair = load_global<uint32_t>(scale_and_zero + 2 * at);
      const auto low = static_cast<uint16_t>(pair), high = static_cast<uint16_t>(pair >> 16);
      if (dtype == QCTS_F16) return {{bits_of(f16_to_f32(low)), bits_of(f16_to_f32(high))}};
      return {{bits_of(bf16_to_f32(low)), bits_of(bf16_to_f32(high))}};
    }
    return {
        {bits_of(load_float(dtype, scale_and_zero, at)), bits_of(load_float(dtype, scale_and_zero, at + 1))}};
  }
  static QCTS_DEVICE void decode(const uint32_t* words, const Words2& pair, float (&w)[8]) {
    QCTS_UNROLL
    for (int i = 0; i < 8; ++i)
      w[i] = fmaf(minus_8(words[0], i / 2 * 8 + (i % 2 == 0 ? 4 : 0)), float_of(pair.word[0]),
                  float_of(pair.word[1]));
  }
};

}  // namespace
}  // namespace qcts::sm80
