// SPDX-License-Identifier: BSD-3-Clause
// The frame of dequantize for codes of one byte. It reads n * k bytes and writes n * k floats, and nothing is
// used twice, so bytes limit it: each is moved once, 16 a lane (sm80/tiles.h), and a warp keeps several tiles
// in flight. Rows whose addresses are not multiples of 16, or whose k is not, go an element a lane.
//
// A Family has
//   Family(problem)           on the host; a plain struct that is passed to the device
//   codes                     the first of n * k bytes
//   Scale, scale(n, k)        what the element at (n, k) is computed with
//   kRun                      k, a multiple of it, to k + kRun - 1 share a Scale
//   element<T>(scale, code)   the bits of an element, rounded as the scheme says
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/tiles.h"

namespace qcts::sm80 {
namespace {

constexpr int kDequantizeThreads = 256, kWarps = kDequantizeThreads / 32;

// y [n,k], rows of stride_bytes.
struct Rows {
  uint8_t* first;
  int64_t stride_bytes, n, k;
};

template <class T, class Family>
__global__ void __launch_bounds__(kDequantizeThreads) dequantize_tiles(const Family family, const Rows y) {
  using Tiles = Tile<T>;
  const int64_t tiles = (y.k + kTile - 1) / kTile;
  const int64_t at = static_cast<int64_t>(block_x()) * kWarps + warp_index();
  const int64_t n = at / tiles, k = at % tiles * kTile;
  if (n >= y.n) return;
  uint32_t words[4] = {};
  if (const int64_t first = k + Tiles::first_code(); first < y.k) {
    const Words4 codes = load_stream(family.codes + n * y.k + first);
    QCTS_UNROLL
    for (int i = 0; i < 4; ++i) words[i] = codes.word[i];
  }
  Tiles::exchange(words);
  QCTS_UNROLL
  for (int segment = 0; segment < Tiles::kSegments; ++segment) {
    const int64_t first = k + Tiles::first_float(segment);
    if (first >= y.k) continue;
    Words4 chunk = {};
    QCTS_UNROLL
    for (int run = 0; run < T::kChunk; run += Family::kRun) {
      const auto scale = family.scale(n, first + run);
      QCTS_UNROLL
      for (int i = run; i < run + Family::kRun && i < T::kChunk; ++i)
        set_element<T>(
            chunk, i,
            family.template element<T>(scale, code_byte(words[segment * Tiles::kCodeWords + i / 4], i % 4)));
    }
    store_global(y.first + n * y.stride_bytes + first * T::kBytes, chunk);
  }
}

template <class T, class Family>
__global__ void __launch_bounds__(kDequantizeThreads) dequantize_elements(const Family family, const Rows y) {
  for (int64_t n = block_x(); n < y.n; n += grid_x())
    for (int64_t k = thread_index(); k < y.k; k += kDequantizeThreads)
      store_global(
          y.first + n * y.stride_bytes + k * T::kBytes,
          family.template element<T>(family.scale(n, k),
                                     static_cast<int8_t>(load_global<uint8_t>(family.codes + n * y.k + k))));
}

template <class Family>
qcts_status dequantize(const qcts_problem& p) {
  return with_type(p.w_dtype, [&](auto type) {
    using T = decltype(type);
    const Family family(p);
    const Rows y = {static_cast<uint8_t*>(p.y), p.ldy_bytes, p.n, p.k};
    if (p.k % 16 == 0 && is_multiple_of_16(family.codes) && has_aligned_rows(p.y, p.n, p.ldy_bytes))
      return launch(
          p, {.blocks_x = blocks_for(p.n * blocks_for(p.k, kTile), kWarps), .threads = kDequantizeThreads},
          dequantize_tiles<T, Family>, family, y);
    return launch(p, {.blocks_x = p.n < kMaxGridX ? p.n : kMaxGridX, .threads = kDequantizeThreads},
                  dequantize_elements<T, Family>, family, y);
  });
}

}  // namespace
}  // namespace qcts::sm80
