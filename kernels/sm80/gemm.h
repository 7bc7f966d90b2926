// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for more rows of x: m16n8k16 on tensor cores, x by the weight, with the codes decoded
// to bfloat16 or float16 between shared memory and the multiplication.
//
// A block computes 16 * kRowTiles rows by 64 columns. Its four warps have 16 columns each and all rows, so
// that each code is decoded once a block. Up to 16 rows, reading the codes limits it; for more rows four
// tiles share each decoded word, and the multiplications limit it. Blocks that share codes are neighbours in
// the grid, so the codes come from memory once. n / 64 blocks do not fill the 108 multiprocessors of an A100
// below about 7,000 columns; splitting k among blocks would, for a second pass over the sums.
//
// Copies to shared memory run kStages - 1 stages ahead, each of 64 bytes of codes a row and the x that faces
// them. With one row tile that is 16 KiB of codes in flight a block, more than the 11 KiB that cover the
// latency of a multiprocessor's share of memory bandwidth; with four, two stages are 8 KiB, and multiplying
// takes longer than reading.
//
// The order of k within a unit is chosen by the codes. load_matrices gives lane 4 * n + j word j of each 16
// bytes of row n: 8 consecutive codes of 4 bits or 4 of 8 bits. So the lane's operands of b are those k, and
// its operands of a the same: one access of 16 or 8 bytes a row of x. Rows of codes are 80 bytes apart, rows
// of x 64 or 32 bytes more than a multiple of 128: no access has bank conflicts.
//
// Products are exact. A group has an accumulator of its own, and its scale acts on the finished sum.
#pragma once

#include "kernels/cuda/copies.h"
#include "kernels/sm80/operands.h"
#include "kernels/sm80/product.h"

namespace qcts::sm80 {
namespace {

constexpr int kGemmThreads = 128, kTileColumns = 64, kWarpColumns = 16;
constexpr int kCodeBytes = 64, kCodePitch = kCodeBytes + 16;  // of a row in a stage
constexpr int kParameterPitch = kTileColumns + 1;             // odd: groups of a column in different banks
constexpr int kUnits = 4;                                     // of 16 bytes of codes

template <class Decoder, int kRowTiles>
struct Tiling {
  static constexpr int kUnitK = 128 / Decoder::kBits, kStageK = kUnits * kUnitK;
  static constexpr int kMatrices = kUnitK / 16, kPairs = 2 * kMatrices;  // of a unit; of a word
  static constexpr int kLaneBytes = 2 * 2 * kPairs;                      // of x that face a word
  static constexpr int kXBytes = Decoder::kXBytes * kStageK;             // of a row in a stage
  static constexpr int kRows = 16 * kRowTiles,
                       kPitchX = kXBytes + (Decoder::kXBytes == 1 ? 16 : 4 * kLaneBytes);
  static constexpr int kStages = kRowTiles == 1 ? 5 : 3;
  static constexpr int kStageBytes = kTileColumns * kCodePitch + kRows * kPitchX;
  // Of a window of stages, whose parameters are loaded together: 16 of a row fill sectors.
  static constexpr int kGroups = (kStageK / Decoder::kMinGroup > 16 ? kStageK / Decoder::kMinGroup : 16) + 1;
  static constexpr int kHeld = (kGroups * kTileColumns + kGemmThreads - 1) / kGemmThreads;  // of a thread
  static constexpr int kParameterBytes = kGroups * kParameterPitch * static_cast<int>(sizeof(Words2));
  static constexpr uint32_t kSharedBytes = kStages * kStageBytes + 2 * kParameterBytes;
  static_assert(kSharedBytes <= 99 << 10, "compute capability 8.6 has no more");
};

// Copies the 16 bytes at `from`, of which `bytes_left` belong to the row, and zeros for the rest.
template <int kElementBytes>
QCTS_DEVICE void fetch_chunk(uint8_t* to, const uint8_t* from, int64_t bytes_left, bool is_aligned) {
  if (is_aligned && (bytes_left >= 16 || bytes_left <= 0))
    copy_async<16>(to, from, bytes_left > 0);
  else
    store_shared(to, load_elements<kElementBytes>(from, bytes_left));
}

// A block's part of the product: its shared memory, its stages and its warps' places.
template <class Decoder, int kRowTiles>
struct BlockTile {
  using Of = Tiling<Decoder, kRowTiles>;
  const Weight& weight;
  const Product& p;
  int64_t first_m, first_n;
  struct Window {
    int stage, buffer;  // of the window; its parameters
  };

  QCTS_DEVICE BlockTile(const Weight& of_weight, const Product& product) : weight(of_weight), p(product) {
    const int64_t bands = (p.m + Of::kRows - 1) / Of::kRows, band = quotient(block_x(), bands);
    first_m = (block_x() - band * bands) * Of::kRows;
    first_n = band * kTileColumns;
  }
  static QCTS_DEVICE uint8_t* codes(int stage) {
    return shared_memory() + stage % Of::kStages * Of::kStageBytes;
  }
  static QCTS_DEVICE uint8_t* x(int stage) { return codes(stage) + kTileColumns * kCodePitch; }

  // The column tiles of the warp and the row tiles that have a part in y, 0 to 2 and 1 to kRowTiles.
  QCTS_DEVICE int warp_columns() const {
    const int64_t n = p.n - first_n - column(0);
    return n <= 0 ? 0 : n <= 8 ? 1 : 2;
  }
  QCTS_DEVICE int row_tiles() const {
    const int64_t m = p.m - first_m;
    return m >= Of::kRows ? kRowTiles : static_cast<int>((m + 15) / 16);
  }
  // The first column of a column tile, in the block; the row of the lane's sums in half a row tile, in y.
  static QCTS_DEVICE int column(int tile) { return static_cast<int>(warp_index()) * kWarpColumns + 8 * tile; }
  QCTS_DEVICE int64_t row(int half) const { return first_m + 8 * half + lane_index() / 4; }

  // compute(stage, window) for all stages, while later ones are copied. Parameters pass through registers, so
  // that their loads have the time of a stage.
  template <class Compute>
  QCTS_DEVICE void each_stage(int stages_of_window, const Compute& compute) const {
    const int stages = static_cast<int>((p.k + Of::kStageK - 1) / Of::kStageK);
    Held held;
    load_parameters(0, stages_of_window, held);
    store_parameters(0, held);
    for (int stage = 0; stage < Of::kStages - 1; ++stage) {
      if (stage < stages) fetch(stage);
      commit_copies();
    }
    Window window = {0, 0};
    for (int stage = 0; stage < stages; ++stage) {
      wait_copies<Of::kStages - 2>();
      sync_block();
      if (stage + Of::kStages - 1 < stages) fetch(stage + Of::kStages - 1);
      commit_copies();
      const bool is_last = window.stage + 1 == stages_of_window && stage + 1 < stages;
      if (is_last) load_parameters(stage + 1, stages_of_window, held);
      compute(stage, window);
      ++window.stage;
      if (!is_last) continue;
      window = {0, 1 - window.buffer};
      store_parameters(window.buffer, held);
    }
    wait_copies<0>();
  }

  QCTS_DEVICE void load_codes(int stage, uint32_t (&words)[2][kUnits]) const {
    QCTS_UNROLL
    for (int tile = 0; tile < 2; ++tile)
      if (tile < warp_columns())
        load_matrices<kUnits>(words[tile], codes(stage) + (column(tile) + lane_index() % 8) * kCodePitch +
                                               lane_index() / 8 * 16);
  }
  // The parameters of a column, for a group that counts from the first one of the window.
  static QCTS_DEVICE Words2 parameters_of(const Window& window, int group, int column) {
    return load_shared<Words2>(parameters(window.buffer) +
                               (group * kParameterPitch + column) * static_cast<int>(sizeof(Words2)));
  }

  // Stores the sums of a row and two columns, plus the bias.
  QCTS_DEVICE void store_pair(int64_t m, int tile, float left, float right) const {
    const int64_t n = first_n + column(tile) + lane_index() % 4 * 2;
    if (n >= p.n) return;
    uint8_t* y = p.y + m * p.ldy_bytes;
    left += bias_of(p, n);
    if (n + 1 < p.n) right += bias_of(p, n + 1);
    if (n + 1 < p.n && p.y_dtype != QCTS_F32 && p.has_paired_y)
      return store_global(y + 2 * n, p.y_dtype == QCTS_F16 ? pack_f16(left, right) : pack_bf16(left, right));
    store_float(p.y_dtype, y, n, left);
    if (n + 1 < p.n) store_float(p.y_dtype, y, n + 1, right);
  }

 private:
  static QCTS_DEVICE uint8_t* parameters(int buffer) {
    return shared_memory() + Of::kStages * Of::kStageBytes + buffer * Of::kParameterBytes;
  }

  QCTS_DEVICE void fetch(int stage) const {
    const int64_t code_bytes = p.k * Decoder::kBits / 8, from_code = int64_t{stage} * kCodeBytes;
    for (int at = static_cast<int>(thread_index()); at < kTileColumns * (kCodeBytes / 16);
         at += kGemmThreads) {
      const int row = at / (kCodeBytes / 16), byte = at % (kCodeBytes / 16) * 16;
      const int64_t n = first_n + row, left = n < p.n ? code_bytes - from_code - byte : 0;
      fetch_chunk<1>(codes(stage) + row * kCodePitch + byte, weight.codes + n * code_bytes + from_code + byte,
                     left, p.has_aligned_codes);
    }
    constexpr int kChunks = Of::kXBytes / 16;
    for (int at = static_cast<int>(thread_index()); at < Of::kRows * kChunks; at += kGemmThreads) {
      const int row = at / kChunks, byte = at % kChunks * 16;
      const int64_t m = first_m + row, from = int64_t{stage} * Of::kXBytes + byte;
      const int64_t left = m < p.m ? Decoder::kXBytes * p.k - from : 0;
      fetch_chunk<Decoder::kXBytes>(x(stage) + row * Of::kPitchX + byte, p.x + m * p.ldx_bytes + from, left,
                                    p.has_aligned_x);
    }
  }

  // Parameters of a window on their way. Lanes take them in the order in which the planes have them: columns
  // of a group, or groups of a column.
  struct Held {
    int groups;
    Words2 pairs[Of::kHeld];
  };
  struct Place {
    int column, group;
  };
  QCTS_DEVICE Place place_of(const Held& held, int i) const {
    const int at = static_cast<int>(thread_index()) + i * kGemmThreads;
    if (weight.group_step != 1) return {at % kTileColumns, at / kTileColumns};
    const auto column = static_cast<int>(quotient(at, held.groups));
    return {column, at - column * held.groups};
  }
  QCTS_DEVICE void load_parameters(int stage, int stages_of_window, Held& held) const {
    const int64_t k = int64_t{stage} * Of::kStageK, length = int64_t{stages_of_window} * Of::kStageK;
    const int64_t first = quotient(k, weight.group);
    held.groups =
        static_cast<int>(quotient((p.k - k < length ? p.k : k + length) - 1, weight.group) - first) + 1;
    QCTS_UNROLL
    for (int i = 0; i < Of::kHeld; ++i) {
      const Place at = place_of(held, i);
      const bool valid = at.column < kTileColumns && at.group < held.groups && first_n + at.column < p.n;
      held.pairs[i] =
          valid ? weight.parameters<Decoder::kTwoLevels>(first_n + at.column, first + at.group) : Words2{};
    }
  }
  QCTS_DEVICE void store_parameters(int buffer, const Held& held) const {
    QCTS_UNROLL
    for (int i = 0; i < Of::kHeld; ++i) {
      const Place at = place_of(held, i);
      if (at.column < kTileColumns && at.group < held.groups)
        store_shared(
            parameters(buffer) + (at.group * kParameterPitch + at.column) * static_cast<int>(sizeof(Words2)),
            held.pairs[i]);
    }
  }
};

// The column tiles of a warp: sums of the current group, and totals of those before.
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

  // Products of a unit. `group` counts from the first one of the window.
  QCTS_DEVICE void multiply(const Decoder& decoder, int stage, const typename Block::Window& window, int unit,
                            int group, const uint32_t (&words)[2][kUnits]) {
    uint32_t b[2][Of::kPairs];
    QCTS_UNROLL
    for (int tile = 0; tile < 2; ++tile) {
      if (tile >= columns) continue;
      Words2 parameters = {};
      if constexpr (Decoder::kReadsParameters) {
        // Groups shorter than a unit are those of the decoder; beyond k there are none.
        const int lane_k = unit * Of::kUnitK + static_cast<int>(lane_index()) % 4 * 2 * Of::kPairs;
        const int own = (window.stage * Of::kStageK + lane_k) / Decoder::kMinGroup;
        if (Decoder::kScalesSums || int64_t{stage} * Of::kStageK + lane_k < block.p.k)
          parameters = Block::parameters_of(window, Decoder::kScalesSums ? group : own,
                                            Block::column(tile) + static_cast<int>(lane_index()) / 4);
      }
      decoder.template operands<T>(words[tile][unit], parameters, b[tile]);
    }
    const uint8_t* from = Block::x(stage) + lane_index() / 4 * Of::kPitchX + unit * Of::kUnitK * 2 +
                          lane_index() % 4 * Of::kLaneBytes;
    QCTS_UNROLL
    for (int i = 0; i < kRowTiles; ++i) {
      if (i >= row_tiles) continue;
      uint32_t upper[Of::kPairs], lower[Of::kPairs];
      load_x(from + 16 * i * Of::kPitchX, upper);
      load_x(from + (16 * i + 8) * Of::kPitchX, lower);
      QCTS_UNROLL
      for (int matrix = 0; matrix < Of::kMatrices; ++matrix) {
        const uint32_t a[4] = {upper[2 * matrix], lower[2 * matrix], upper[2 * matrix + 1],
                               lower[2 * matrix + 1]};
        QCTS_UNROLL
        for (int tile = 0; tile < 2; ++tile) {
          if (tile >= columns) continue;
          const uint32_t pairs[2] = {b[tile][2 * matrix], b[tile][2 * matrix + 1]};
          Pair<T>::multiply(sums[i][tile], a, pairs);
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
  static QCTS_DEVICE void load_x(const uint8_t* from, uint32_t (&pairs)[Of::kPairs]) {
    using Words = std::conditional_t<Of::kPairs == 4, Words4, Words2>;
    const auto chunk = load_shared<Words>(from);
    QCTS_UNROLL
    for (int i = 0; i < Of::kPairs; ++i) pairs[i] = chunk.word[i];
  }
};

// `group_units`: units of a group, or more than k has if the row is one.
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

// Stages that touch at most kGroups groups.
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

// x and the weights are exact in one type of tensor cores, and no group ends within a unit.
template <class Decoder>
bool is_for_gemm(const qcts_problem& p, int64_t group) {
  if (p.x_dtype != QCTS_BF16 && p.x_dtype != QCTS_F16) return false;
  return !Decoder::kScalesSums || group == p.k || group % (128 / Decoder::kBits) == 0;
}

template <class Decoder>
qcts_status launch_gemm(const qcts_problem& p, const Weight& weight, const uint8_t* x_sums) {
  Product product = product_of(p, weight.codes, Decoder::kBits);
  product.x_sums = x_sums;
  const auto group_units =
      static_cast<int>(weight.group == p.k ? p.k : weight.group / (128 / Decoder::kBits));
  const auto start = [&](auto tiles, auto kernel) {
    return launch(p, at_tiles<Decoder, decltype(tiles)::value>(p), kernel, weight, product, group_units,
                  stages_of_window<Decoder>(weight.group));
  };
  constexpr std::integral_constant<int, 1> kFew;
  constexpr std::integral_constant<int, 4> kMany;
  if (p.x_dtype == QCTS_BF16)
    return p.m <= 16 ? start(kFew, gemm<BF16, Decoder, 1>) : start(kMany, gemm<BF16, Decoder, 4>);
  return p.m <= 16 ? start(kFew, gemm<F16, Decoder, 1>) : start(kMany, gemm<F16, Decoder, 4>);
}

}  // namespace
}  // namespace qcts::sm80
