// SPDX-License-Identifier: BSD-3-Clause
// A block's part in sm80/gemm.h: how it divides the product, its stages in shared memory, the copies that
// fill them, and the parameters of groups.
#pragma once

#include "kernels/cuda/copies.h"
#include "kernels/sm80/operands.h"
#include "kernels/sm80/product.h"

namespace qcts::sm80 {
namespace {

constexpr int kGemmThreads = 128, kTileColumns = 64, kWarpColumns = 16;
constexpr int kCodeBytes = 64, kCodePitch = kCodeBytes + 16;  // bytes per row of a stage
// The pitch is odd, so that the groups of a column are in different banks.
constexpr int kParameterPitch = kTileColumns + 1;
constexpr int kUnits = 4;  // units of 16 bytes per row of codes

template <class Decoder, int kRowTiles>
struct Tiling {
  static constexpr int kUnitK = 128 / Decoder::kBits, kStageK = kUnits * kUnitK;
  static constexpr int kMatrices = kUnitK / 16, kPairs = 2 * kMatrices;  // per unit; per word
  static constexpr int kLaneBytes = 2 * 2 * kPairs;                      // bytes of x multiplied by a word
  static constexpr int kXBytes = Decoder::kXBytes * kStageK;             // bytes per row of a stage
  static constexpr int kRows = 16 * kRowTiles,
                       kPitchX =
                           kXBytes + (Decoder::kXBytes == 1 || kReadsTiles<Decoder> ? 16 : 4 * kLaneBytes);
  static constexpr int kStages = kRowTiles == 1 ? 5 : 3;
  static constexpr int kStageBytes = kTileColumns * kCodePitch + kRows * kPitchX;
  // The number of groups in a window of stages. Their parameters are loaded together: 16 of a row fill
  // sectors.
  static constexpr int kGroups = (kStageK / Decoder::kMinGroup > 16 ? kStageK / Decoder::kMinGroup : 16) + 1;
  static constexpr int kHeld = (kGroups * kTileColumns + kGemmThreads - 1) / kGemmThreads;  // per thread
  static constexpr int kParameterBytes = kGroups * kParameterPitch * static_cast<int>(sizeof(Words2));
  static constexpr uint32_t kSharedBytes = kStages * kStageBytes + 2 * kParameterBytes;
  static_assert(kSharedBytes <= 99 << 10, "compute capability 8.6 has no more");
};

// Copies the 16 bytes at `from`. Only `bytes_left` bytes belong to the row, and zeros replace the rest.
template <int kElementBytes>
QCTS_DEVICE void fetch_chunk(uint8_t* to, const uint8_t* from, int64_t bytes_left, bool is_aligned) {
  if (is_aligned && (bytes_left >= 16 || bytes_left <= 0))
    copy_async<16>(to, from, bytes_left > 0);
  else
    store_shared(to, load_elements<kElementBytes>(from, bytes_left));
}

// A block's part of the product: its shared memory, its stages, and the places of its warps.
template <class Decoder, int kRowTiles>
struct BlockTile {
  using Of = Tiling<Decoder, kRowTiles>;
  const Weight& weight;
  const Product& p;
  int64_t first_m, first_n;
  struct Window {
    int stage, buffer;  // stage within the window; buffer of its parameters
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

  // These return how many column tiles of the warp (0 to 2) and row tiles (1 to kRowTiles) have a part in y.
  QCTS_DEVICE int warp_columns() const {
    const int64_t n = p.n - first_n - column(0);
    return n <= 0 ? 0 : n <= 8 ? 1 : 2;
  }
  QCTS_DEVICE int row_tiles() const {
    const int64_t m = p.m - first_m;
    return m >= Of::kRows ? kRowTiles : static_cast<int>((m + 15) / 16);
  }
  // column() is the first column of a column tile, within the block. row() is the row of y that has the
  // lane's sums in half a row tile.
  static QCTS_DEVICE int column(int tile) { return static_cast<int>(warp_index()) * kWarpColumns + 8 * tile; }
  QCTS_DEVICE int64_t row(int half) const { return first_m + 8 * half + lane_index() / 4; }

  // Calls compute(stage, window) for all stages, while later ones are copied. Parameters pass through
  // registers, so their loads have the time of a stage to complete.
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
    for (int tile = 0; tile < 2; ++tile) {
      if (tile >= warp_columns()) continue;
      if constexpr (kReadsTiles<Decoder>) {
        const auto own =
            load_shared<Words4>(codes(stage) + column(tile) / kTileRows * kTileBytes + 16 * lane_index());
        QCTS_UNROLL
        for (int i = 0; i < kUnits; ++i) words[tile][i] = own.word[i];
      } else {
        load_matrices<kUnits>(words[tile], codes(stage) + (column(tile) + lane_index() % 8) * kCodePitch +
                                               lane_index() / 8 * 16);
      }
    }
  }
  // Returns the parameters of a column for a group. `group` counts from the first group of the window.
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
    if constexpr (kReadsTiles<Decoder>)
      fetch_tiles(stage);
    else
      fetch_codes(stage);
    constexpr int kChunks = Of::kXBytes / 16;
    for (int at = static_cast<int>(thread_index()); at < Of::kRows * kChunks; at += kGemmThreads) {
      const int row = at / kChunks, byte = at % kChunks * 16;
      const int64_t m = first_m + row, from = int64_t{stage} * Of::kXBytes + byte;
      const int64_t left = m < p.m ? Decoder::kXBytes * p.k - from : 0;
      fetch_chunk<Decoder::kXBytes>(x(stage) + row * Of::kPitchX + byte, p.x + m * p.ldx_bytes + from, left,
                                    p.has_aligned_x);
    }
  }
  // Eight tiles, one for each warp and column tile.
  QCTS_DEVICE void fetch_tiles(int stage) const {
    static_assert(!kReadsTiles<Decoder> || Of::kStageK == kTileK);
    for (int at = static_cast<int>(thread_index()); at < kTileColumns / kTileRows * 32; at += kGemmThreads) {
      const int64_t down = first_n / kTileRows + at / 32;
      fetch_chunk<4>(codes(stage) + 16 * at, tile_at(weight.codes, p.k, down, stage) + at % 32 * 16,
                     down * kTileRows < p.n ? 16 : 0, p.has_aligned_codes);
    }
  }
  QCTS_DEVICE void fetch_codes(int stage) const {
    const int64_t code_bytes = p.k * Decoder::kBits / 8, from_code = int64_t{stage} * kCodeBytes;
    for (int at = static_cast<int>(thread_index()); at < kTileColumns * (kCodeBytes / 16);
         at += kGemmThreads) {
      const int row = at / (kCodeBytes / 16), byte = at % (kCodeBytes / 16) * 16;
      const int64_t n = first_n + row, left = n < p.n ? code_bytes - from_code - byte : 0;
      fetch_chunk<1>(codes(stage) + row * kCodePitch + byte, weight.codes + n * code_bytes + from_code + byte,
                     left, p.has_aligned_codes);
    }
  }

  // The parameters of a window on their way to shared memory. Lanes take them in the order in which the
  // planes have them: columns of a group, or groups of a column.
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

}  // namespace
}  // namespace qcts::sm80
