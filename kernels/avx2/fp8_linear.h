// SPDX-License-Identifier: BSD-3-Clause
// Float8 e4m3 weights with one scale a row, for the AVX2 variants of `linear`: y = scale * sum(x *
// value(code)) + bias.
//
// Up to m = 4, reading one byte a weight is the bound, provided that decoding keeps up: a widening load, a
// shift, a mask, a multiplication and a fused multiply-add for eight codes (kernels/avx2/float8.h). Handling
// NaN codes would cost three more operations. Instead, packing sets the scale of a column with a NaN to NaN,
// which is what every sum over that column would be. A block of 64 columns holds one cache line for each k,
// whose byte c belongs to column c, then 64 scales (float32).
#pragma once

#include "kernels/avx2/float8.h"
#include "kernels/avx2/linear.h"

namespace qcts::avx2 {
namespace {

struct Fp8Row {
  static constexpr int kStep = 1, kWide = 1, kBytesPerK = kColumns, kSumsAlone = 8;
  static constexpr int64_t kHeaderBytes = 0;
  static constexpr bool kHasZeros = false;

  static int64_t group(const qcts_problem& p) { return p.k; }
  static int64_t scale_bytes(const qcts_problem&) { return 4 * kColumns; }
  static float factor(const uint8_t*) { return 1; }

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    out[0] = finite_small_float<Float8::e4m3>(at + vector * kLanes);
  }

  static void scales(const qcts_problem&, const uint8_t* at, float* scale, float*) {
    std::memcpy(scale, at, 4 * kColumns);
  }

  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Fp8Row>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata")) + first_n * p.k;
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    transpose_bytes(qdata, p.k, columns, p.k, out);
    pack_scales(p, first_n, columns, out);
  }

  // Writes the scales, which follow the codes of a block.
  static void pack_scales(const qcts_problem& p, int64_t first_n, int64_t columns, uint8_t* out) {
    uint8_t* scales = out + padded_k<Fp8Row>(p) * kColumns;
    std::memcpy(scales, static_cast<const char*>(in_plane(p, "scale")) + 4 * first_n,
                static_cast<size_t>(4 * columns));
    constexpr uint32_t kNan = 0x7FC00000;
    for (int64_t k = 0; k < p.k; ++k)
      for (int64_t c = 0; c < columns; ++c)
        if ((out[k * kColumns + c] & 0x7F) == 0x7F) std::memcpy(scales + 4 * c, &kNan, 4);
  }
};

}  // namespace
}  // namespace qcts::avx2
