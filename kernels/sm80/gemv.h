// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for few rows of x, and for every x and weight that the matrix frame
// (kernels/sm80/gemm.h) does not take. Each weight is used once per row of x. The kernel should be bound by
// reading the codes, but issuing instructions takes longer: 0.5 and more for a byte, where 0.17 keep up with
// memory (kernels/cuda/sass.json). Codes are read once, 16 bytes per lane, straight to registers. A warp has
// two rows of the weight, which share each read of x from shared memory, and walks along k. The eight warps
// of a block have sixteen consecutive rows, so x and the parameters of a group are staged once per block.
// Other blocks compute the rows of x beyond kGemvRows. They read the codes again, from L2.
//
// Lane l needs the kCodes elements of x that are multiplied by its codes. They are staged in units of 16
// bytes, so that the lanes of a warp read neighbouring units (place_of). In the order of k, the reads would
// be kCodes elements apart, and all lanes of an access would meet in a few banks.
//
// Fused multiply-adds in float32 sum eight products. The group's scale acts on that sum. The order depends on
// k alone, and y is rounded once.
#pragma once

#include "kernels/sm80/operands.h"
#include "kernels/sm80/product.h"

namespace qcts::sm80 {
namespace {

constexpr int kGemvThreads = 256, kGemvWarps = kGemvThreads / 32, kGemvRows = 4,
              kGemvColumns = 2 * kGemvWarps;
// The number of k that are staged at a time. Four rows of float32 take 32 KiB of x. With groups of 8,
// parameters take 33 KiB.
constexpr int kStagedK = 2048;
constexpr int kUnitBytes = 16;

template <class T, class Decoder>
struct Staging {
  static constexpr int kCodes = 128 / Decoder::kBits;  // per lane
  static constexpr int kUnits = kCodes / T::kChunk;    // units of x multiplied by these codes
  static constexpr int kUnitsOfWarp = 32 * kUnits;
  static constexpr int kRowBytes = kStagedK * T::kBytes;  // for one row of x
  static_assert(kUnits >= 2 && kUnits <= 8 && kStagedK % (32 * kCodes) == 0);

  // Returns the place of unit `unit` of lane `lane` in step `step`. A quarter of a warp stages eight units at
  // a time that are consecutive along k. The exclusive-or puts them into different banks.
  static QCTS_DEVICE int place_of(int step, int lane, int unit) {
    return (step * kUnitsOfWarp + unit * 32 + (lane ^ (unit * (8 / kUnits)))) * kUnitBytes;
  }
};

// Finds group k / group. If the group is a power of two, a shift does the division. A shift of 62 makes the
// whole row one group.
struct Groups {
  int64_t group;
  int32_t shift;  // negative: not a power of two
  QCTS_DEVICE int64_t of(int64_t k) const { return shift >= 0 ? k >> shift : quotient(k, group); }
};

// Reads eight elements of x from one or two units.
template <class T, class Decoder>
QCTS_DEVICE void load_staged(const uint8_t* row, int step, int eight, float (&x)[8]) {
  QCTS_UNROLL
  for (int part = 0; part < 8 / T::kChunk; ++part) {
    const auto chunk =
        load_shared<Words4>(row + Staging<T, Decoder>::place_of(step, static_cast<int>(lane_index()),
                                                                eight * (8 / T::kChunk) + part));
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i) x[part * T::kChunk + i] = T::decode(element<T>(chunk, i));
  }
}

// Stages `length` elements, from k on, of `rows` rows of x. Zeros fill up whole steps of a warp.
template <class T, class Decoder>
QCTS_DEVICE void stage_x(const Product& p, int64_t first_m, int rows, int64_t k, int length,
                         uint8_t* staged) {
  using Stage = Staging<T, Decoder>;
  constexpr int kStep = 32 * Stage::kCodes;
  const int units = (length + kStep - 1) / kStep * Stage::kUnitsOfWarp;
  for (int row = 0; row < rows; ++row)
    for (int unit = static_cast<int>(thread_index()); unit < units; unit += kGemvThreads) {
      const int from = unit * T::kChunk, lane = unit / Stage::kUnits % 32;
      store_shared(
          staged + row * Stage::kRowBytes +
              Stage::place_of(unit / Stage::kUnitsOfWarp, lane, unit % Stage::kUnits),
          load_row_chunk<T::kBytes>(p.x + (first_m + row) * p.ldx_bytes + (k + from) * T::kBytes,
                                    static_cast<int64_t>(length - from) * T::kBytes, p.has_aligned_x));
    }
}

// Returns the staged parameters of a group of one of the block's columns. Each column has a row of groups.
// The lanes of a warp have codes of neighbouring groups, so they read neighbouring words. The odd pitch keeps
// the columns of a group in different banks.
QCTS_DEVICE uint8_t* staged_pair(uint8_t* staged, int column, int group, int groups) {
  return staged + (column * (groups | 1) + group) * static_cast<int>(sizeof(Words2));
}
// Stages parameters. Lanes take them in the order in which the planes have them: columns of a group, or
// groups of a column.
template <class Decoder>
QCTS_DEVICE void stage_parameters(const Product& p, const Weight& weight, int64_t first_n,
                                  int64_t first_group, int groups, uint8_t* staged) {
  const bool by_column = weight.group_step == 1;
  for (int at = static_cast<int>(thread_index()); at < groups * kGemvColumns; at += kGemvThreads) {
    const int column = by_column ? static_cast<int>(quotient(at, groups)) : at % kGemvColumns;
    const int group = by_column ? at - column * groups : at / kGemvColumns;
    Words2 pair = {};
    if (first_n + column < p.n)
      pair = weight.parameters<Decoder::kTwoLevels>(first_n + column, first_group + group);
    store_shared(staged_pair(staged, column, group, groups), pair);
  }
}

// Returns sum + eight products, scaled as the decoder says.
template <class Decoder>
QCTS_DEVICE float add_eight(const float (&x)[8], const float (&w)[8], const Words2& parameters, float sum) {
  float part = Decoder::kScalesSums ? 0 : sum, of_x = 0;
  QCTS_UNROLL
  for (int i = 0; i < 8; ++i) {
    part = fmaf(x[i], w[i], part);
    if (Decoder::kHasZero) of_x += x[i];
  }
  if (!Decoder::kScalesSums) return part;
  sum = fmaf(float_of(parameters.word[0]), part, sum);
  // A zero of 0 leaves infinities of x alone.
  if (Decoder::kHasZero && float_of(parameters.word[1]) != 0)
    sum = fmaf(float_of(parameters.word[1]), of_x, sum);
  return sum;
}

// Sums four rows over lanes that are 0, kStep / 2, kStep and both apart. The i-th of them gets the sum of row
// i. In each of two steps a lane gives away half of its rows. That takes 3 shuffles instead of 8.
template <uint32_t kStep>
QCTS_DEVICE float split_rows(const float (&sums)[kGemvRows]) {
  static_assert(kGemvRows == 4);
  const bool upper = (lane_index() & kStep) != 0, odd = (lane_index() & kStep / 2) != 0;
  float pair[2];
  QCTS_UNROLL
  for (int i = 0; i < 2; ++i)
    pair[i] = (upper ? sums[2 + i] : sums[i]) + shuffle_xor(upper ? sums[i] : sums[2 + i], kStep);
  return (odd ? pair[1] : pair[0]) + shuffle_xor(odd ? pair[0] : pair[1], kStep / 2);
}
// Sums four rows over the lanes of a warp. Lanes 8 * i to 8 * i + 7 get the sum of row i.
QCTS_DEVICE float sum_of_rows(const float (&sums)[kGemvRows]) {
  float sum = split_rows<16>(sums);
  QCTS_UNROLL
  for (uint32_t with = 4; with > 0; with /= 2) sum += shuffle_xor(sum, with);
  return sum;
}

template <class T, class Decoder>
__global__ void __launch_bounds__(kGemvThreads)
    gemv(const Weight weight, const Product p, const Groups groups) {
  using Stage = Staging<T, Decoder>;
  const int64_t bands = (p.n + kGemvColumns - 1) / kGemvColumns, band = quotient(block_x(), bands);
  const int64_t first_n = (block_x() - band * bands) * kGemvColumns, first_m = band * kGemvRows;
  const int rows = p.m - first_m < kGemvRows ? static_cast<int>(p.m - first_m) : kGemvRows;
  const int warp = static_cast<int>(warp_index()), lane = static_cast<int>(lane_index());
  uint8_t* staged_x = shared_memory();
  uint8_t* staged_parameters = staged_x + rows * Stage::kRowBytes;
  const Decoder decoder(weight);
  const int columns = first_n + warp + kGemvWarps < p.n ? 2 : first_n + warp < p.n ? 1 : 0;
  float sums[2][kGemvRows] = {};
  for (int64_t k = 0; k < p.k; k += kStagedK) {
    const int length = static_cast<int>(p.k - k < kStagedK ? p.k - k : kStagedK);
    const int64_t first_group = groups.of(k);
    const int count = static_cast<int>(groups.of(k + length - 1) - first_group) + 1;
    stage_x<T, Decoder>(p, first_m, rows, k, length, staged_x);
    stage_parameters<Decoder>(p, weight, first_n, first_group, count, staged_parameters);
    sync_block();
    for (int at = lane * Stage::kCodes; columns > 0 && at < length; at += 32 * Stage::kCodes) {
      Words4 codes[2] = {};
      QCTS_UNROLL
      for (int side = 0; side < 2; ++side) {
        if (side >= columns) continue;
        const uint8_t* from =
            weight.codes + ((first_n + warp + side * kGemvWarps) * p.k + k + at) * Decoder::kBits / 8;
        codes[side] = p.has_aligned_codes && at + Stage::kCodes <= length
                          ? load_stream(from)
                          : load_elements<1>(from, static_cast<int64_t>(length - at) * Decoder::kBits / 8);
      }
      QCTS_UNROLL
      for (int eight = 0; eight < Stage::kCodes / 8; ++eight) {
        if (at + 8 * eight >= length) continue;
        const auto group = static_cast<int>(groups.of(k + at + 8 * eight) - first_group);
        float w[2][8];
        Words2 parameters[2];
        QCTS_UNROLL
        for (int side = 0; side < 2; ++side) {
          parameters[side] =
              load_shared<Words2>(staged_pair(staged_parameters, warp + side * kGemvWarps, group, count));
          decode_floats(decoder, &codes[side].word[eight * Decoder::kBits / 4], parameters[side], w[side]);
        }
        QCTS_UNROLL
        for (int row = 0; row < kGemvRows; ++row) {
          if (row >= rows) continue;
          float x[8];
          load_staged<T, Decoder>(staged_x + row * Stage::kRowBytes, at / (32 * Stage::kCodes), eight, x);
          QCTS_UNROLL
          for (int side = 0; side < 2; ++side)
            sums[side][row] = add_eight<Decoder>(x, w[side], parameters[side], sums[side][row]);
        }
      }
    }
    sync_block();
  }
  QCTS_UNROLL
  for (int side = 0; side < 2; ++side) {
    const float sum = sum_of_rows(sums[side]);
    const int row = lane / 8;
    const int64_t n = first_n + warp + side * kGemvWarps;
    if (lane % 8 == 0 && row < rows && n < p.n)
      store_float(p.y_dtype, p.y + (first_m + row) * p.ldy_bytes, n, sum * weight.finish(n) + bias_of(p, n));
  }
}

[[maybe_unused]] Groups groups_of(int64_t group, int64_t k) {
  constexpr int32_t kOne = 62;
  if (group == k) return {group, kOne};
  for (int32_t shift = 0; shift < kOne; ++shift)
    if (group == int64_t{1} << shift) return {group, shift};
  return {group, -1};
}

// Starts a frame that stages x and parameters as gemv() does.
[[maybe_unused]] Launch at_columns(const qcts_problem& p, int64_t group, int64_t x_bytes) {
  const int64_t rows = p.m < kGemvRows ? p.m : kGemvRows;
  const int64_t groups =
      (p.k < kStagedK ? p.k : kStagedK) / group + 2;  // both ends of the staged part may cut a group
  return {.blocks_x = blocks_for(p.n, kGemvColumns) * blocks_for(p.m, kGemvRows),
          .threads = kGemvThreads,
          .shared_bytes =
              static_cast<uint32_t>(rows * kStagedK * x_bytes +
                                    (groups + 1) * kGemvColumns * static_cast<int64_t>(sizeof(Words2)))};
}

// Launches the kernel that `kernel_of` returns for x's type, T{}: gemv or gemv_tiles.
template <class Decoder, class KernelOf>
qcts_status launch_at_columns(const qcts_problem& p, const Weight& weight, const KernelOf& kernel_of) {
  return with_type(p.x_dtype, [&](auto type) {
    return launch(p, at_columns(p, weight.group, decltype(type)::kBytes), kernel_of(type), weight,
                  product_of<Decoder>(p, weight), groups_of(weight.group, p.k));
  });
}

template <class Decoder>
qcts_status launch_gemv(const qcts_problem& p, const Weight& weight) {
  return launch_at_columns<Decoder>(p, weight, [](auto type) { return gemv<decltype(type), Decoder>; });
}

}  // namespace
}  // namespace qcts::sm80
