// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for more rows of x. It multiplies x by the weight on tensor cores, with m16n8k16.
// Codes are decoded to bfloat16 or float16 between shared memory and the multiplication.
//
// A block computes 16 * kRowTiles rows by 64 columns. Each of its four warps has 16 columns and all rows, so
// each code is decoded once per block. For more than 16 rows, four tiles share each decoded word. The
// kernel should be bound by reading the codes and by the multiplications, but issuing instructions takes
// longer: 14 to 50 for each multiplication, where 6 would do (kernels/cuda/sass.json). Blocks that share
// codes are neighbours in the grid, so the codes come from memory once. Below about 7,000 columns, n / 64
// blocks do not fill the 108 multiprocessors of an A100. Splitting k among blocks would fill them, but would
// need a second pass over the sums.
//
// Copies to shared memory run kStages - 1 stages ahead. A stage has 64 bytes of codes per row, and the x that
// they are multiplied by. With one row tile, that is 16 KiB of codes in flight per block, more than the 11
// KiB that cover the latency of a multiprocessor's share of memory bandwidth. With four row tiles, two stages
// are 8 KiB, and multiplying takes longer than reading.
//
// The codes determine the order of k within a unit. load_matrices gives lane 4 * n + j word j of each 16
// bytes of row n: 8 consecutive codes of 4 bits, or 4 of 8 bits. So these k are the lane's operands of b. Its
// operands of a have the same k, which take one access of 16 or 8 bytes per row of x. Rows of codes are 80
// bytes apart. The distance between rows of x is 64 or 32 bytes more than a multiple of 128. So no access has
// bank conflicts.
//
// In tile_packed_4d (kReadsTiles) a column tile and a stage are one tile of the layout. A lane takes its 16
// bytes, the operands of b in the instruction's own order of k, from shared memory as they are. So
// load_matrices loads a, from rows of x whose distance is 16 bytes more than a multiple of 128.
//
// Products are exact. Each group has its own accumulator, and its scale acts on the finished sum.
#pragma once

#include "kernels/sm80/gemm_block.h"

namespace qcts::sm80 {
namespace {

// The column tiles of a warp: the sums of the current group, and the totals of the groups before it.
template <class T, class Decoder, int kRowTiles>
struct WarpTile {
  using Of = Tiling<Decoder, kRowTiles>;
  using Block = BlockTile<Decoder, kRowTiles>;
  const Block& block;
  int columns, row_tiles;
  int group_of_row = 0;
  float sums[kRowTiles][2][4] = {}, totals[kRowTiles][2][4] = {};

  QCTS_DEVICE explicit WarpTile(const Block& of)
      : block(of), columns(of.warp_columns()), row_tiles(of.row_tiles()) {}

  // Adds the products of a unit. `group` counts from the first group of the window.
  QCTS_DEVICE void multiply(const Decoder& decoder, int stage, const typename Block::Window& window, int unit,
                            int group, const uint32_t (&words)[2][kUnits]) {
    uint32_t b[2][Of::kPairs];
    QCTS_UNROLL
    for (int tile = 0; tile < 2; ++tile) {
      if (tile >= columns) continue;
      Words2 parameters = {};
      if constexpr (Decoder::kReadsParameters) {
        // If groups are shorter than a unit, the decoder sets their length. There are no groups beyond k.
        const int lane_k = unit * Of::kUnitK + static_cast<int>(lane_index()) % 4 * 2 * Of::kPairs;
        const int own = (window.stage * Of::kStageK + lane_k) / Decoder::kMinGroup;
        if (Decoder::kScalesSums || int64_t{stage} * Of::kStageK + lane_k < block.p.k)
          parameters = Block::parameters_of(window, Decoder::kScalesSums ? group : own,
                                            Block::column(tile) + static_cast<int>(lane_index()) / 4);
      }
      decoder.template operands<T>(words[tile][unit], parameters, b[tile]);
    }
    const uint8_t* from = Block::x(stage) + unit * Of::kUnitK * 2;
    QCTS_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      if (i >= row_tiles) continue;
      uint32_t a[Of::kMatrices][4];
      load_a(from + 16 * i * Of::kPitchX, a);
      QCTS_UNROLL
      for (int matrix = 0; matrix < Of::kMatrices; ++matrix) {
        QCTS_UNROLL
        for (int tile = 0; tile < 2; ++tile) {
          if (tile >= columns) continue;
          const uint32_t pairs[2] = {b[tile][2 * matrix], b[tile][2 * matrix + 1]};
          Pair<T>::multiply(sums[i][tile], a[matrix], pairs);
        }
      }
    }
  }

  // Ends a group: totals += scale * sums, plus zero * the sum of x.
  QCTS_DEVICE void scale_sums(const typename Block::Window& window, int group) {
    QCTS_UNROLL
    for (int tile = 0; tile < 2; ++tile) {
      if (tile >= columns) continue;
      const int first = Block::column(tile) + static_cast<int>(lane_index()) % 4 * 2;
      const Words2 of[2] = {Block::parameters_of(window, group, first),
                            Block::parameters_of(window, group, first + 1)};
      QCTS_UNROLL
      for (int i = 0; i < 4 * kRowTiles; ++i) {
        float& sum = sums[i / 4][tile][i % 4];
        float& total = totals[i / 4][tile][i % 4];
        total = fmaf(float_of(of[i % 2].word[0]), sum, total);
        sum = 0;
      }
      if constexpr (Decoder::kHasZero) add_zeros(tile, of);
    }
    ++group_of_row;
  }

  QCTS_DEVICE void store() const {
    QCTS_UNROLL
    for (int half = 0; half < 2 * kRowTiles; ++half) {
      const int64_t m = block.row(half);
      if (m >= block.p.m) continue;
      QCTS_UNROLL
      for (int tile = 0; tile < 2; ++tile) {
        const float* of = &(Decoder::kScalesSums ? totals : sums)[half / 2][tile][half % 2 * 2];
        block.store_pair(m, tile, finished(tile, 0, of[0]), finished(tile, 1, of[1]));
      }
    }
  }

 private:
  QCTS_DEVICE void add_zeros(int tile, const Words2 (&of)[2]) {
    const Product& p = block.p;
    QCTS_UNROLL
    for (int half = 0; half < 2 * kRowTiles; ++half) {
      const int64_t m = block.row(half);
      if (m >= p.m) continue;
      const float of_x = float_of(load_global<uint32_t>(p.x_sums + 4 * (group_of_row * p.m + m)));
      QCTS_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& total = totals[half / 2][tile][half % 2 * 2 + i];
        const float zero = float_of(of[i].word[1]);
        if (zero != 0) total = fmaf(zero, of_x, total);  // a zero of 0 leaves infinities of x alone
      }
    }
  }
  QCTS_DEVICE float finished(int tile, int side, float sum) const {
    if (Decoder::kScalesSums) return sum;
    const int64_t n = block.first_n + Block::column(tile) + lane_index() % 4 * 2 + side;
    return n < block.p.n ? sum * block.weight.finish(n) : 0;
  }
  // Loads the operands of a for a unit of 16 rows of x, which begins at `from`.
  static QCTS_DEVICE void load_a(const uint8_t* from, uint32_t (&a)[Of::kMatrices][4]) {
    const auto lane = static_cast<int>(lane_index());
    if constexpr (kReadsTiles<Decoder>) {
      QCTS_UNROLL
      for (int matrix = 0; matrix < Of::kMatrices; ++matrix)
        load_matrices<4>(a[matrix], from + lane % 16 * Of::kPitchX + (2 * matrix + lane / 16) * 16);
    } else {
      uint32_t upper[Of::kPairs], lower[Of::kPairs];
      load_x(from + lane / 4 * Of::kPitchX + lane % 4 * Of::kLaneBytes, upper);
      load_x(from + (lane / 4 + 8) * Of::kPitchX + lane % 4 * Of::kLaneBytes, lower);
      QCTS_UNROLL
      for (int matrix = 0; matrix < Of::kMatrices; ++matrix) {
        QCTS_UNROLL
        for (int i = 0; i < 4; ++i) a[matrix][i] = (i % 2 == 0 ? upper : lower)[2 * matrix + i / 2];
      }
    }
  }
  static QCTS_DEVICE void load_x(const uint8_t* from, uint32_t (&pairs)[Of::kPairs]) {
    using Words = std::conditional_t<Of::kPairs == 4, Words4, Words2>;
    const auto chunk = load_shared<Words>(from);
    QCTS_UNROLL
    for (int i = 0; i < Of::kPairs; ++i) pairs[i] = chunk.word[i];
  }
};

// `group_units` is the number of units in a group. If the row is one group, it is more than k has.
template <class T, class Decoder, int kRowTiles>
__global__ void __launch_bounds__(kGemmThreads)
    gemm(const Weight weight, const Product p, const int group_units, const int stages_of_window) {
  using Of = Tiling<Decoder, kRowTiles>;
  const BlockTile<Decoder, kRowTiles> block(weight, p);
  const Decoder decoder(weight);
  WarpTile<T, Decoder, kRowTiles> warp(block);
  int units = 0, group = 0;
  block.each_stage(stages_of_window, [&](int stage, const auto& window) {
    uint32_t words[2][kUnits];
    block.load_codes(stage, words);
    if (window.stage == 0) group = 0;
    QCTS_UNROLL
    for (int unit = 0; unit < kUnits; ++unit) {
      const int64_t k = int64_t{stage} * Of::kStageK + unit * Of::kUnitK;
      if (k >= p.k) continue;
      warp.multiply(decoder, stage, window, unit, group, words);
      if (!Decoder::kScalesSums || (++units < group_units && k + Of::kUnitK < p.k)) continue;
      warp.scale_sums(window, group++);
      units = 0;
    }
  });
  warp.store();
}

// Returns the number of stages in a window. They touch at most kGroups groups.
template <class Decoder>
int stages_of_window(int64_t group) {
  using Of = Tiling<Decoder, 1>;
  constexpr int64_t kMost = 1 << 20;
  const int64_t stages = (Of::kGroups - 1) * group / Of::kStageK;
  return static_cast<int>(stages < 1 ? 1 : stages > kMost ? kMost : stages);
}

template <class Decoder, int kRowTiles>
Launch at_tiles(const qcts_problem& p) {
  using Of = Tiling<Decoder, kRowTiles>;
  return {.blocks_x = blocks_for(p.m, Of::kRows) * blocks_for(p.n, kTileColumns),
          .threads = kGemmThreads,
          .shared_bytes = Of::kSharedBytes};
}

// Returns true if one type of tensor cores holds x and the weights exactly, and no group ends within a unit.
template <class Decoder>
bool is_for_gemm(const qcts_problem& p, int64_t group) {
  if (p.x_dtype != QCTS_BF16 && p.x_dtype != QCTS_F16) return false;
  return !Decoder::kScalesSums || group == p.k || group % (128 / Decoder::kBits) == 0;
}

template <class Decoder>
qcts_status launch_gemm(const qcts_problem& p, const Weight& weight, const uint8_t* x_sums) {
  Product product = product_of<Decoder>(p, weight);
  product.x_sums = x_sums;
  const auto group_units =
      static_cast<int>(weight.group == p.k ? p.k : weight.group / (128 / Decoder::kBits));
  const auto start = [&](auto tiles, auto kernel) {
    return launch(p, at_tiles<Decoder, decltype(tiles)::value>(p), kernel, weight, product, group_units,
                  stages_of_window<Decoder>(weight.group));
  };
  constexpr std::integral_constant<int, 1> kFew;
  constexpr std::integral_constant<int, 4> kMany;
  // kernels/sm80/decode.h takes nearly all problems with few rows and such codes.
  if constexpr (!kSpreadsPairs<Decoder>)
    if (p.m <= 16)
      return p.x_dtype == QCTS_BF16 ? start(kFew, gemm<BF16, Decoder, 1>)
                                    : start(kFew, gemm<F16, Decoder, 1>);
  return p.x_dtype == QCTS_BF16 ? start(kMany, gemm<BF16, Decoder, 4>) : start(kMany, gemm<F16, Decoder, 4>);
}

}  // namespace
}  // namespace qcts::sm80
