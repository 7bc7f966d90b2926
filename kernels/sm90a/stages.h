// SPDX-License-Identifier: BSD-3-Clause
// Brings operands to wgmma. One warp of a block fetches, the others multiply, and a ring of stages in shared
// memory lies between them. Each stage has two barriers. A phase of `full` ends when the bytes of the stage
// are there. A phase of `empty` ends when all multiplying warps have used them. The fetching warp waits for
// nothing else, so it runs as many stages ahead as there are. A multiplying warp never stands still because
// another one has to issue copies. With copies that every thread issues for itself, as before compute
// capability 9.0, a block would have to meet once per stage.
//
// A stage has 128 bytes along k of each row, in the order of copy_box(). wgmma reads this order without bank
// conflicts. A box needs rows at multiples of 16 bytes. If rows are elsewhere, all lanes of the fetching warp
// copy them element by element to the same places, and the multiplying warps do not notice the difference.
// Reading is then bound by the instructions of one warp. This happens only for odd shapes and addresses.
#pragma once

#include "kernels/cuda/wgmma.h"
#include "kernels/sm80/linear_weight.h"
#include "kernels/sm80/product.h"

namespace qcts::sm90a {
namespace {

using namespace qcts::device;
using namespace qcts::sm80;

constexpr int kGroupThreads = 128, kGroupRows = 64;  // threads in a group of four warps; rows of a in wgmma
constexpr int kFetchThreads = 32;
constexpr int kRowBytes = static_cast<int>(kBoxRowBytes);

// Rows in global memory. A kernel gets it in a parameter that is `const __grid_constant__`.
struct Source {
  TensorMap map;  // if rows come by boxes
  const uint8_t* first;
  int64_t stride_bytes, rows, row_bytes;
  bool by_box;
};

// kElementBytes is the size of the elements that global memory has at aligned addresses: 1 or 2.
template <int kRows, int kElementBytes>
QCTS_DEVICE void fetch_by_elements(const Source& from, uint8_t* to, int64_t row, int64_t byte) {
  constexpr int kUnits = kRowBytes / 16;
  for (int at = static_cast<int>(lane_index()); at < kRows * kUnits; at += 32) {
    const int r = at / kUnits, unit = at % kUnits;
    const int64_t begin = byte + 16 * unit, left = row + r < from.rows ? from.row_bytes - begin : 0;
    store_shared(to + r * kRowBytes + (unit ^ r % 8) * 16,
                 load_elements<kElementBytes>(from.first + (row + r) * from.stride_bytes + begin, left));
  }
}

// The barriers of kStages stages, at `barriers` in shared memory. Steps count from 0 and use the stages in
// turn.
template <int kStages>
struct Ring {
  static constexpr int kBytes = 2 * kStages * static_cast<int>(sizeof(uint64_t));
  uint64_t* barriers;

  QCTS_DEVICE void make_full() const {
    for (int i = 0; i < kStages; ++i) make_barrier(full(i), 1);
  }
  QCTS_DEVICE void make_empty(uint32_t multiplying_warps) const {
    for (int i = 0; i < kStages; ++i) make_barrier(empty(i), multiplying_warps);
  }
  QCTS_DEVICE uint64_t* full(int step) const { return barriers + step % kStages; }
  QCTS_DEVICE void wait_full(int step) const { wait_barrier(full(step), step / kStages % 2); }
  QCTS_DEVICE void wait_empty(int step) const {
    if (step >= kStages) wait_barrier(empty(step), (step / kStages - 1) % 2);
  }
  // Called by a warp after all its lanes have used the stage.
  QCTS_DEVICE void release(int step) const {
    if (lane_index() == 0) arrive(empty(step));
  }

 private:
  QCTS_DEVICE uint64_t* empty(int step) const { return barriers + kStages + step % kStages; }
};

// Tiles of y.
// The weight is operand a, so y comes transposed. wgmma has 64 rows of a, but 16 to 128 columns of b. There
// may be few rows of x, so they are the columns.

struct Place {
  int64_t n, m;  // first rows of the weight and of x
};

// Blocks that run at the same time cover kBand tiles of the weight by as many tiles of x. So the blocks that
// share an operand read it from L2, not from memory.
template <int kWeightRows, int kRows>
QCTS_DEVICE Place place_of_block(int64_t n, int64_t m) {
  constexpr int64_t kBand = 8;
  const int64_t tiles_n = (n + kWeightRows - 1) / kWeightRows, tiles_m = (m + kRows - 1) / kRows;
  const int64_t band = quotient(block_x(), kBand * tiles_m), in_band = block_x() - band * kBand * tiles_m;
  const int64_t left = tiles_n - band * kBand, wide = left < kBand ? left : kBand;
  const int64_t tile_m = quotient(in_band, wide);
  return {(band * kBand + in_band - tile_m * wide) * kWeightRows, tile_m * kRows};
}

// Returns the number of warps that multiply: those in groups that have columns of y. `left` columns are left
// for the block.
template <int kWeightRows>
QCTS_DEVICE int multiplying_warps(int64_t left) {
  const int rows = left < kWeightRows ? static_cast<int>(left) : kWeightRows;
  return (rows + kGroupRows - 1) / kGroupRows * (kGroupThreads / 32);
}

struct Output {
  uint8_t* y;  // [m, n]
  const void* bias;
  int64_t ldy_bytes, m, n;
  uint32_t y_dtype, bias_dtype;
  bool has_aligned_y;  // four consecutive elements can be one access
};

QCTS_DEVICE void store_four(const Output& out, int64_t m, int64_t n, const float (&values)[4]) {
  uint8_t* row = out.y + m * out.ldy_bytes;
  if (!out.has_aligned_y || n + 4 > out.n) {
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i)
      if (n + i < out.n) store_float(out.y_dtype, row, n + i, values[i]);
  } else if (out.y_dtype == QCTS_F32) {
    store_global(row + 4 * n,
                 Words4{{bits_of(values[0]), bits_of(values[1]), bits_of(values[2]), bits_of(values[3])}});
  } else if (out.y_dtype == QCTS_F16) {
    store_global(row + 2 * n, Words2{{pack_f16(values[0], values[1]), pack_f16(values[2], values[3])}});
  } else {
    store_global(row + 2 * n, Words2{{pack_bf16(values[0], values[1]), pack_bf16(values[2], values[3])}});
  }
}

// Stores y = sums * scale(m) + bias for the tile of this warp: 16 rows of the weight from n on, which are
// columns of y, by 2 * kSums rows of x from m on. Lanes exchange sums first. Then each lane has four
// consecutive columns of a row, and a row of the tile is one whole sector.
template <int kSums, class Scale>
QCTS_DEVICE void store_tile(const Output& out, Place at, const float (&sums)[kSums], const Scale& scale) {
  if (at.n >= out.n) return;
  const uint32_t lane = lane_index();
  const bool is_odd = (lane & 4) != 0, is_upper = (lane & 8) != 0;  // bits of the lane's row, lane / 4
  const int64_t n = at.n + (is_upper ? 8 : 0) + lane / 16 * 4;
  float bias[4] = {};
  QCTS_UNROLL
  for (int i = 0; i < 4; ++i)
    if (out.bias != nullptr && n + i < out.n) bias[i] = load_float(out.bias_dtype, out.bias, n + i);
  QCTS_UNROLL
  for (int eight = 0; eight < kSums / 4; ++eight) {
    if (at.m + 8 * eight >= out.m) continue;
    // pairs[half] holds two sums of one column, for each half of the tile: the even lane's row, then the odd
    // lane's next row.
    float pairs[2][2];
    QCTS_UNROLL
    for (int half = 0; half < 2; ++half) {
      const float left = sums[4 * eight + 2 * half], right = sums[4 * eight + 2 * half + 1];
      const float other = shuffle_xor(is_odd ? left : right, 4);
      pairs[half][0] = is_odd ? other : left;
      pairs[half][1] = is_odd ? right : other;
    }
    const float other[2] = {shuffle_xor(is_upper ? pairs[0][0] : pairs[1][0], 8),
                            shuffle_xor(is_upper ? pairs[0][1] : pairs[1][1], 8)};
    float four[4];
    QCTS_UNROLL
    for (int i = 0; i < 2; ++i) {
      four[i] = is_upper ? other[i] : pairs[0][i];
      four[2 + i] = is_upper ? pairs[1][i] : other[i];
    }
    const int64_t m = at.m + 8 * eight + lane % 4 * 2 + (is_odd ? 1 : 0);
    if (m >= out.m) continue;
    const float by = scale(m);
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) four[i] = four[i] * by + bias[i];
    store_four(out, m, n, four);
  }
}

// On the host.

// Makes a source that is read in boxes of `box_rows` rows, or by elements if boxes cannot have its rows.
[[maybe_unused]] qcts_status make_source(const void* first, int64_t stride_bytes, int64_t rows,
                                         int64_t row_bytes, uint32_t box_rows, Source* source) {
  *source = {{}, static_cast<const uint8_t*>(first), stride_bytes, rows, row_bytes, false};
  if (!has_aligned_rows(first, rows, stride_bytes)) return QCTS_OK;
  source->by_box = true;
  // One row has no stride.
  const int64_t stride = rows > 1 ? stride_bytes : (row_bytes + 15) / 16 * 16;
  return make_tensor_map({first, stride, rows, row_bytes, 1, box_rows}, &source->map);
}

[[maybe_unused]] Output output_of(const qcts_problem& p) {
  const int64_t four = 4 * static_cast<int64_t>(dtype_bytes(p.y_dtype));
  return {static_cast<uint8_t*>(p.y),
          p.bias,
          p.ldy_bytes,
          p.m,
          p.n,
          p.y_dtype,
          p.bias_dtype,
          static_cast<int64_t>(reinterpret_cast<uintptr_t>(p.y)) % four == 0 &&
              (p.m <= 1 || p.ldy_bytes % four == 0)};
}

}  // namespace
}  // namespace qcts::sm90a
