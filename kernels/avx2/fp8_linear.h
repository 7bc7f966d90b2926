// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights for the AVX2 variants of `linear`.
// y is the sum over groups of scale * sum(x * value(code)), plus bias.
// fp8_row is e4m3 with one scale per row.
// fp8 is e4m3 or e5m2, with scales for rows, for the tensor, for groups of a row or for blocks.
//
// Up to m = 4, reading one byte per weight limits the speed, if decoding keeps up.
// Eight codes take a widening load, a shift, a mask, a multiplication
// and a fused multiply-add (kernels/avx2/float8.h). Handling NaN codes would cost three more operations.
// Instead, packing sets the scale of a column to NaN if it has a NaN code.
// Every sum over that column would be NaN anyway.
// A block of 64 columns holds one cache line for each k of a group; its byte c belongs to column c.
// 64 scales (float32) follow the codes of each group.
#pragma once

#include "kernels/avx2/float8.h"
#include "kernels/avx2/linear.h"

namespace qcts::avx2 {
namespace {

// If a column has an e4m3 NaN among its k_count codes, sets its float32 scale to NaN.
[[maybe_unused]] void spread_nan(const uint8_t* codes, int64_t k_count, int64_t columns, uint8_t* scales) {
  constexpr uint32_t kNan = 0x7FC00000;
  for (int64_t k = 0; k < k_count; ++k)
    for (int64_t c = 0; c < columns; ++c)
      if ((codes[k * kColumns + c] & 0x7F) == 0x7F) std::memcpy(scales + 4 * c, &kNan, 4);
}

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
    spread_nan(out, p.k, columns, scales);
  }
};

// The scheme of fp8.
template <Float8 kFormat>
struct Fp8Blocks : Fp8Row {
  static int64_t group(const qcts_problem& p) { return p.group != 0 ? p.group : p.k; }

  [[gnu::always_inline]] static void decode(const uint8_t*, const uint8_t* at, int vector, int,
                                            __m256 (&out)[kWide]) {
    out[0] = float8_for_linear<kFormat>(at + vector * kLanes);
  }

  static void block(const LinearCall& call, int64_t block, int64_t first_m, int64_t rows) {
    multiply_block<Fp8Blocks>(call, block, first_m, rows);
  }

  static void pack_block(const qcts_problem& p, int64_t first_n, uint8_t* out) {
    const auto* qdata = static_cast<const uint8_t*>(in_plane(p, "qdata")) + first_n * p.k;
    const auto* plane = static_cast<const char*>(in_plane(p, "scale"));
    const int64_t columns = p.n - first_n < kColumns ? p.n - first_n : kColumns;
    const int64_t of_rows = scheme_params(p).group_rows, rows = of_rows != 0 ? of_rows : p.n;
    const int64_t k_count = group(p), groups = p.k / k_count;
    for (int64_t g = 0; g < groups; ++g, out += group_bytes<Fp8Blocks>(p)) {
      transpose_bytes(qdata + g * k_count, p.k, columns, k_count, out);
      uint8_t* scales = out + padded_group<Fp8Blocks>(p) * kColumns;
      for (int64_t c = 0; c < columns; ++c)
        std::memcpy(scales + 4 * c, plane + 4 * ((first_n + c) / rows * groups + g), 4);
      if (kFormat == Float8::e4m3) spread_nan(out, k_count, columns, scales);
    }
  }
};

}  // namespace
}  // namespace qcts::avx2
