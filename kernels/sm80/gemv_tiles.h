// SPDX-License-Identifier: BSD-3-Clause
// The frame of `linear` for few rows of x and a weight in tile_packed_4d, as kernels/sm80/gemv.h is for plain
// codes. It serves float32 x and buffers that kernels/sm80/decode.h does not take.
//
// The layout holds what a lane of mma.m16n8k16 needs for 8 columns of y and 128 k as 16 bytes, and a warp's
// 32 such parts are stored one after another. So a load of 16 bytes per lane takes a whole tile, and its 512
// bytes fill sectors without a rest, also for padded n and k. No lane needs codes that another has loaded.
//
// A block has two rows of tiles, 16 columns of y, and its eight warps take turns along k. Lane 4 * r + c has
// codes of column r, and of each 32 k those at 2 * c + {0, 1, 8, 9, 16, 17, 24, 25}. x is staged in that
// order, 8 elements after one another for each c, so one access has all that a word of codes is multiplied
// by, and the lanes of a column share it. After the last k, a quad adds its sums, and then the warps do.
#pragma once

#include "kernels/sm80/gemv.h"

namespace qcts::sm80 {
namespace {

constexpr int kWordK = 32, kTilesDown = kGemvColumns / kTileRows;  // k of a word; rows of tiles per block

// x in shared memory: for each 32 k, four units of the 8 elements of lanes with the same c.
template <class T>
struct TileStaging {
  static constexpr int kPairBytes = 2 * T::kBytes, kUnitBytes = 8 * T::kBytes;
  static constexpr int kRowBytes = kStagedK * T::kBytes;  // for one row of x

  // Returns the place of unit c of word `word`. The lanes of a store have one c and several words. The
  // exclusive-or puts them into different banks.
  static QCTS_DEVICE int place_of(int word, int c) {
    return (4 * word + (c ^ (word * T::kBytes / 4 % 4))) * kUnitBytes;
  }
  // Stages `length` elements, a multiple of 32, from k on.
  static QCTS_DEVICE void store(const Product& p, int64_t first_m, int rows, int64_t k, int length,
                                uint8_t* staged) {
    for (int row = 0; row < rows; ++row)
      for (int from = static_cast<int>(thread_index()) * T::kChunk; from < length;
           from += kGemvThreads * T::kChunk) {
        const Words4 chunk = load_row_chunk<T::kBytes>(
            p.x + (first_m + row) * p.ldx_bytes + (k + from) * T::kBytes, 16, p.has_aligned_x);
        QCTS_UNROLL
        for (int i = 0; i < T::kChunk / 2; ++i) {
          uint8_t* to = staged + row * kRowBytes + place_of(from / kWordK, from % 8 / 2 + i) +
                        from % kWordK / 8 * kPairBytes;
          if constexpr (T::kBytes == 4)
            store_shared(to, Words2{{chunk.word[2 * i], chunk.word[2 * i + 1]}});
          else
            store_shared(to, chunk.word[i]);
        }
      }
  }
  static QCTS_DEVICE void load(const uint8_t* row, int word, float (&x)[8]) {
    const uint8_t* unit = row + place_of(word, static_cast<int>(lane_index()) % 4);
    QCTS_UNROLL
    for (int part = 0; part < 8 / T::kChunk; ++part) {
      const auto chunk = load_shared<Words4>(unit + 16 * part);
      QCTS_UNROLL
      for (int i = 0; i < T::kChunk; ++i) x[part * T::kChunk + i] = T::decode(element<T>(chunk, i));
    }
  }
};

// Adds the sums of the warps of a block, and stores y. Lane 4 * r + c has those of column r and row c of x.
QCTS_DEVICE void store_sums_of_warps(const Weight& weight, const Product& p, int64_t first_m, int rows,
                                     int64_t first_n, const float (&sums)[kTilesDown][kGemvRows]) {
  uint8_t* shared = shared_memory();
  const auto place = [shared](uint32_t warp, uint32_t at) {
    return shared + 4 * (warp * 32 * kTilesDown + at);
  };
  QCTS_UNROLL
  for (int down = 0; down < kTilesDown; ++down)
    store_shared(place(warp_index(), 32 * down + lane_index()), bits_of(split_rows<2>(sums[down])));
  sync_block();
  const uint32_t at = thread_index();
  const auto row = static_cast<int>(at % 4);
  const int64_t n = first_n + at / 4;
  if (at >= 32 * kTilesDown || row >= rows || n >= p.n) return;
  float sum = 0;
  QCTS_UNROLL
  for (uint32_t warp = 0; warp < kGemvWarps; ++warp) sum += float_of(load_shared<uint32_t>(place(warp, at)));
  store_float(p.y_dtype, p.y + (first_m + row) * p.ldy_bytes, n, sum * weight.finish(n) + bias_of(p, n));
}

template <class T, class Decoder>
__global__ void __launch_bounds__(kGemvThreads, 4)
    gemv_tiles(const Weight weight, const Product p, const Groups groups) {
  using Stage = TileStaging<T>;
  const int64_t bands = (p.n + kGemvColumns - 1) / kGemvColumns, band = quotient(block_x(), bands);
  const int64_t first_n = (block_x() - band * bands) * kGemvColumns, first_m = band * kGemvRows;
  const int rows = p.m - first_m < kGemvRows ? static_cast<int>(p.m - first_m) : kGemvRows;
  const int warp = static_cast<int>(warp_index()), lane = static_cast<int>(lane_index());
  const int down = first_n + kTileRows < p.n ? kTilesDown : 1;
  uint8_t* staged_x = shared_memory();
  uint8_t* staged_parameters = staged_x + rows * Stage::kRowBytes;
  const Decoder decoder(weight);
  float sums[kTilesDown][kGemvRows] = {};
  for (int64_t k = 0; k < p.k; k += kStagedK) {
    const int length = static_cast<int>(p.k - k < kStagedK ? p.k - k : kStagedK);
    const int64_t first_group = groups.of(k);
    const int count = static_cast<int>(groups.of(k + length - 1) - first_group) + 1;
    Stage::store(p, first_m, rows, k, length, staged_x);
    stage_parameters<Decoder>(p, weight, first_n, first_group, count, staged_parameters);
    sync_block();
    for (int at = warp * kTileK; at < length; at += kGemvWarps * kTileK) {
      Words4 codes[kTilesDown] = {};
      QCTS_UNROLL
      for (int tile = 0; tile < kTilesDown; ++tile) {
        if (tile >= down) continue;
        const uint8_t* from =
            tile_at(weight.codes, p.k, first_n / kTileRows + tile, (k + at) / kTileK) + 16 * lane;
        codes[tile] = p.has_aligned_codes ? load_stream(from) : load_elements<4>(from, 16);
      }
      QCTS_UNROLL
      for (int word = 0; word < kTileK / kWordK; ++word) {
        if (at + word * kWordK >= length) continue;
        const auto group = static_cast<int>(groups.of(k + at + word * kWordK) - first_group);
        float w[kTilesDown][8];
        Words2 parameters[kTilesDown];
        QCTS_UNROLL
        for (int tile = 0; tile < kTilesDown; ++tile) {
          parameters[tile] =
              load_shared<Words2>(staged_pair(staged_parameters, kTileRows * tile + lane / 4, group, count));
          decode_floats(decoder, &codes[tile].word[word], parameters[tile], w[tile]);
        }
        QCTS_UNROLL
        for (int row = 0; row < kGemvRows; ++row) {
          if (row >= rows) continue;
          float x[8];
          Stage::load(staged_x + row * Stage::kRowBytes, at / kWordK + word, x);
          QCTS_UNROLL
          for (int tile = 0; tile < kTilesDown; ++tile)
            sums[tile][row] = add_eight<Decoder>(x, w[tile], parameters[tile], sums[tile][row]);
        }
      }
    }
    sync_block();
  }
  store_sums_of_warps(weight, p, first_m, rows, first_n, sums);
}

template <class Decoder>
qcts_status launch_gemv_tiles(const qcts_problem& p, const Weight& weight) {
  return launch_at_columns<Decoder>(p, weight, [](auto type) { return gemv_tiles<decltype(type), Decoder>; });
}

}  // namespace
}  // namespace qcts::sm80
