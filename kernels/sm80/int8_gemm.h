// SPDX-License-Identifier: BSD-3-Clause
// `linear` with int8 rows of x: W8A8 and 8da4w, whose codes also take a byte each. One pass codes x
// (kernels/sm80/int8_rows.h). A second pass multiplies on tensor cores with m16n8k32, in the tiles and stages
// of kernels/sm80/gemm.h. Only load_matrices brings bytes from shared memory to operands. The kernel is
// bound by issuing instructions, most of them for fetching x and for scaling sums (kernels/cuda/sass.json).
//
// Integer sums are exact: sum (qx - zx) * (qw - zw) is sum qx * qw - zx * sum qw - zw * sum
// qx + count * zx * zw. Both single sums come from the operands, four bytes per instruction. If a group is
// not a multiple of 32, zeros of x fill the rest of its unit.
#pragma once

#include "kernels/sm80/gemm.h"
#include "kernels/sm80/int8_rows.h"
#include "kernels/sm80/linear.h"

namespace qcts::sm80 {
namespace {

// The members of a decoder that the tiles of gemm.h need.
struct Int8Bytes {
  static constexpr int kBits = 8, kXBytes = 1, kMinGroup = 8;
  static constexpr bool kTwoLevels = false;
};

template <int kRowTiles>
struct Int8WarpTile {
  using Block = BlockTile<Int8Bytes, kRowTiles>;
  using Of = Tiling<Int8Bytes, kRowTiles>;
  static constexpr int kUnitK = 32;
  const Block& block;
  const uint8_t* rows;
  int columns, row_tiles;
  // of_x and of_w are sums of the lane's bytes.
  int32_t sums[kRowTiles][2][4] = {}, of_x[kRowTiles][2] = {}, of_w[2] = {};
  float totals[kRowTiles][2][4] = {};

  QCTS_DEVICE Int8WarpTile(const Block& of, const uint8_t* coded)
      : block(of), rows(coded), columns(of.warp_columns()), row_tiles(of.row_tiles()) {}

  // Adds the products of the unit's bytes from `first` to `last`, which are multiples of 4.
  QCTS_DEVICE void multiply(int stage, int unit, int first, int last, const uint32_t (&words)[2][kUnits]) {
    const int byte = static_cast<int>(lane_index()) % 4 * 4;
    const bool low = byte >= first && byte < last, high = byte + 16 >= first && byte + 16 < last;
    QCTS_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      if (i >= row_tiles) continue;
      uint32_t a[4];
      load_matrices<4>(a, Block::x(stage) + (16 * i + lane_index() % 16) * Of::kPitchX + unit * kUnitK +
                              lane_index() / 16 * 16);
      QCTS_UNROLL
      for (int part = 0; part < 4; ++part) {
        if (!(part < 2 ? low : high)) a[part] = 0;
        of_x[i][part % 2] = dot_s8(a[part], 0x01010101, of_x[i][part % 2]);
      }
      QCTS_UNROLL
      for (int tile = 0; tile < 2; ++tile) {
        if (tile >= columns) continue;
        const uint32_t b[2] = {words[tile][2 * unit], words[tile][2 * unit + 1]};
        multiply_s8(sums[i][tile], a, b);
      }
    }
    QCTS_UNROLL
    for (int tile = 0; tile < 2; ++tile) {
      if (tile >= columns) continue;
      of_w[tile] = dot_s8(low ? words[tile][2 * unit] : 0, 0x01010101, of_w[tile]);
      of_w[tile] = dot_s8(high ? words[tile][2 * unit + 1] : 0, 0x01010101, of_w[tile]);
    }
  }

  // Ends a group of `count` elements: totals += scale * the sum.
  QCTS_DEVICE void scale_sums(const typename Block::Window& window, int group, int64_t count) {
    int32_t row_sums[kRowTiles][2];
    QCTS_UNROLL
    for (int i = 0; i < 2 * kRowTiles; ++i) {
      if (i / 2 >= row_tiles) continue;
      row_sums[i / 2][i % 2] = quad_sum(of_x[i / 2][i % 2]);
      of_x[i / 2][i % 2] = 0;
    }
    QCTS_UNROLL
    for (int tile = 0; tile < 2; ++tile) {
      if (tile >= columns) continue;
      const auto of_column = static_cast<uint32_t>(quad_sum(of_w[tile]));  // of column lane / 4
      of_w[tile] = 0;
      QCTS_UNROLL
      for (int side = 0; side < 2; ++side) {
        const uint32_t column = lane_index() % 4 * 2 + side;
        const int64_t column_sum = static_cast<int32_t>(shuffle(of_column, 4 * column));
        const Words2 of = Block::parameters_of(window, group, block.column(tile) + static_cast<int>(column));
        const int64_t zero = static_cast<int32_t>(of.word[1]);
        QCTS_UNROLL
        for (int i = 0; i < 2 * kRowTiles; ++i) {
          if (i / 2 >= row_tiles) continue;
          int32_t& sum = sums[i / 2][tile][i % 2 * 2 + side];
          float& total = totals[i / 2][tile][i % 2 * 2 + side];
          const int64_t x_zero = static_cast<int32_t>(row(i).word[1]);
          const int64_t exact =
              sum - x_zero * column_sum - zero * row_sums[i / 2][i % 2] + count * x_zero * zero;
          total = fmaf(float_of(of.word[0]), static_cast<float>(exact), total);
          sum = 0;
        }
      }
    }
  }

  QCTS_DEVICE void store() const {
    const Product& p = block.p;
    QCTS_UNROLL
    for (int i = 0; i < 2 * kRowTiles; ++i) {
      const int64_t m = block.row(i);
      if (m >= p.m) continue;
      const float scale = float_of(row(i).word[0]);
      QCTS_UNROLL
      for (int tile = 0; tile < 2; ++tile)
        block.store_pair(m, tile, totals[i / 2][tile][i % 2 * 2] * scale,
                         totals[i / 2][tile][i % 2 * 2 + 1] * scale);
    }
  }

 private:
  static QCTS_DEVICE int32_t quad_sum(int32_t value) {
    QCTS_UNROLL
    for (uint32_t with = 1; with <= 2; with *= 2)
      value += static_cast<int32_t>(shuffle_xor(static_cast<uint32_t>(value), with));
    return value;
  }
  QCTS_DEVICE Words2 row(int half) const {
    const int64_t m = block.row(half);
    return m < block.p.m ? load_global<Words2>(rows + 8 * m) : Words2{};
  }
};

template <int kRowTiles>
__global__ void __launch_bounds__(kGemmThreads)
    int8_gemm(const Weight weight, const Product p, const uint8_t* rows, const int stages_of_window) {
  using Block = BlockTile<Int8Bytes, kRowTiles>;
  using Of = Tiling<Int8Bytes, kRowTiles>;
  using Warp = Int8WarpTile<kRowTiles>;
  const Block block(weight, p);
  Warp warp(block, rows);
  int64_t group_end = weight.group;
  int group = 0;
  block.each_stage(stages_of_window, [&](int stage, const auto& window) {
    uint32_t words[2][kUnits];
    block.load_codes(stage, words);
    if (window.stage == 0) group = 0;
    QCTS_UNROLL
    for (int unit = 0; unit < Of::kStageK / Warp::kUnitK; ++unit) {
      const int64_t k = int64_t{stage} * Of::kStageK + unit * Warp::kUnitK;
      for (int first = 0; first < Warp::kUnitK && k + first < p.k;) {
        const int last = group_end - k < Warp::kUnitK ? static_cast<int>(group_end - k) : Warp::kUnitK;
        warp.multiply(stage, unit, first, last, words);
        first = last;
        if (k + last < group_end) continue;
        warp.scale_sums(window, group++, weight.group);
        group_end += weight.group;
      }
    }
  });
  warp.store();
}

// A sum of this many products of bytes stays below 2^31.
constexpr int64_t kMaxByteSums = 131071;

template <const qcts_kernel& kKernel>
qcts_status supports_int8_rows(const qcts_problem* p, char* why, size_t why_size) {
  if (supports_policy<kKernel>(p, why, why_size) != QCTS_OK) return QCTS_UNSUPPORTED;
  const int64_t group = group_of(*p);
  if (group != p->k && group % Int8Bytes::kMinGroup != 0)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: needs a multiple of 8, or the row",
                  static_cast<long long>(group));
  if (group > kMaxByteSums)
    return refuse(QCTS_UNSUPPORTED, why, why_size, "group %lld: 32-bit sums hold at most %lld elements",
                  static_cast<long long>(group), static_cast<long long>(kMaxByteSums));
  return check_dimensions(*p, why, why_size);
}

[[maybe_unused]] int64_t code_pitch(const qcts_problem& p) { return (p.k + 15) / 16 * 16; }
[[maybe_unused]] uint64_t int8_rows_bytes(const qcts_problem* p) {
  return static_cast<uint64_t>(p->m * (code_pitch(*p) + static_cast<int64_t>(sizeof(Words2))));
}

[[maybe_unused]] qcts_status run_int8_linear(const qcts_problem& p, const Weight& weight,
                                             const RowPolicy& policy) {
  auto* codes = static_cast<uint8_t*>(p.workspace);
  const CodedRows coded = {codes, codes + p.m * code_pitch(p), code_pitch(p)};
  Product product = product_of(p, weight.codes, Int8Bytes::kBits);
  const qcts_status status = with_type(p.x_dtype, [&](auto type) {
    return launch(p,
                  {.blocks_x = p.m,
                   .threads = p.k <= kShortRow ? kShortRowThreads : kRowThreads,
                   .shared_bytes = 8 * kRowThreads / 32},
                  code_rows<decltype(type)>, product, policy, coded);
  });
  if (status != QCTS_OK) return status;
  product.x = coded.codes;
  product.ldx_bytes = coded.pitch;
  product.has_aligned_x = true;
  const auto start = [&](auto tiles, auto kernel) {
    return launch(p, at_tiles<Int8Bytes, decltype(tiles)::value>(p), kernel, weight, product,
                  static_cast<const uint8_t*>(coded.rows), stages_of_window<Int8Bytes>(weight.group));
  };
  return p.m <= 16 ? start(std::integral_constant<int, 1>(), int8_gemm<1>)
                   : start(std::integral_constant<int, 4>(), int8_gemm<4>);
}

// kWeight and kPolicy read the planes and the policy of a problem.
template <const qcts_kernel& kKernel, Weight (*kWeight)(const qcts_problem&),
          RowPolicy (*kPolicy)(const qcts_problem&)>
qcts_status run_int8_rows(const qcts_problem* p) {
  const qcts_problem copy = as_weight_only(*p);
  if (kKernel.supports(p, nullptr, 0) != QCTS_OK || check_run(kKernel, &copy) != QCTS_OK ||
      !gives_scale(kKernel, *p))
    return QCTS_INVALID;
  if (copy.m == 0) return QCTS_OK;
  return run_int8_linear(*p, kWeight(*p), kPolicy(*p));
}

template <const qcts_kernel& kKernel, Weight (*kWeight)(const qcts_problem&),
          RowPolicy (*kPolicy)(const qcts_problem&)>
constexpr qcts_kernel int8_row(const char* scheme) {
  return linear_entry(
      scheme, "sm80",
      "x coded by a first pass, 64 columns per block on tensor cores, exact integer sums; bound by issuing "
      "instructions",
      QCTS_I32,
      {.supports = supports_int8_rows<kKernel>,
       .run = run_int8_rows<kKernel, kWeight, kPolicy>,
       .workspace_bytes = int8_rows_bytes,
       .failure = last_failure});
}

}  // namespace
}  // namespace qcts::sm80
