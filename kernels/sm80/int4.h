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
  explicit TinygemmWeight(const qcts_problem& p)
      : codes(static_cast<const uint8_t*>(in_plane(p, "qdata"))),
        scale_and_zero(static_cast<const uint8_t*>(in_plane(p, "scale_and_zero"))),
        n(p.n),
        dtype(p.w_dtype) {}
  static bool has_aligned_codes(const qcts_problem& p) {
    return p.k % 32 == 0 && is_multiple_of_16(in_plane(p, "qdata"));
  }

  QCTS_DEVICE Words2 parameters(int64_t row, int64_t group) const {
    const int64_t at = 2 * (group * n + row);
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
