// SPDX-License-Identifier: BSD-3-Clause
// The frame of dequantize. Codes are read once and floats are written once, so bytes limit it: both move 16
// bytes a lane (sm80/stage.h). A warp has one tile, and the warps of a block have the same columns of rows
// that follow each other, so that planes with the scales of a group side by side for all rows are read by
// whole sectors. Rows whose addresses are not multiples of 16, or whose codes do not fill 16 bytes, go a unit
// of elements a lane.
//
// A Family has
//   Family(problem)                   on the host; a plain struct that is passed to the device
//   codes                             the first byte of the codes of n * k elements, of type Codes
//   kUnit                             elements whose codes cannot be told apart without each other; divides k
//   length                            elements along k that share parameters
//   parameters<T>(n, k)               what elements from k on, a chunk of T or a unit, are computed with
//   element<T>(parameters, words, i)  the bits of element k + i from the codes, rounded as the scheme says
//   kTable, fill_table()              whether it wants a table after the stages, and a function that fills it
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/stage.h"

namespace qcts::sm80 {
namespace {

// y [n,k], rows of stride_bytes.
struct Rows {
  uint8_t* first;
  int64_t stride_bytes, n, k;
};

template <class Family>
QCTS_DEVICE void begin_table(const Family& family) {
  if constexpr (Family::kTable) {
    family.fill_table();
    sync_block();
  }
}

template <class T, class Family>
__global__ void __launch_bounds__(kBlockThreads) dequantize_tiles(const Family family, const Rows y) {
  using Codes = typename Family::Codes;
  begin_table(family);
  const auto tiles = static_cast<uint32_t>((y.k + Codes::kTile - 1) / Codes::kTile);
  const int64_t n = static_cast<int64_t>(block_x() / tiles) * kBlockWarps + warp_index();
  const int64_t k = static_cast<int64_t>(block_x() % tiles) * Codes::kTile;
  if (n >= y.n) return;
  uint8_t* stage = stage_of_warp();
  const uint32_t lane = lane_index();
  if (const int64_t first = k + lane * Codes::kPer16; first < y.k)
    store_shared(stage + 16 * lane, load_stream(family.codes + (n * y.k + first) / Codes::kUnit));
  sync_warp();
  QCTS_UNROLL
  for (int segment = 0; segment < Chunk<T, Codes>::kSegments; ++segment) {
    const int64_t first = k + Chunk<T, Codes>::first(segment);
    if (first >= y.k) continue;
    uint32_t words[2] = {};
    Chunk<T, Codes>::load(stage, segment, words);
    const auto parameters = family.template parameters<T>(n, first);
    Words4 chunk = {};
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i)
      set_element<T>(chunk, i, family.template element<T>(parameters, words, i));
    store_global(y.first + n * y.stride_bytes + first * T::kBytes, chunk);
  }
}

template <class T, class Family>
__global__ void __launch_bounds__(kBlockThreads) dequantize_units(const Family family, const Rows y) {
  constexpr int kUnit = Family::kUnit;
  begin_table(family);
  for (int64_t n = block_x(); n < y.n; n += grid_x())
    for (int64_t k = static_cast<int64_t>(thread_index()) * kUnit; k < y.k; k += kBlockThreads * kUnit) {
      uint32_t word[1] = {0};
      QCTS_UNROLL
      for (int byte = 0; byte < kUnit * Family::Codes::kBits / 8; ++byte)
        word[0] |= static_cast<uint32_t>(
                       load_global<uint8_t>(family.codes + (n * y.k + k) / Family::Codes::kUnit + byte))
                   << (8 * byte);
      const auto parameters = family.template parameters<T>(n, k);
      QCTS_UNROLL
      for (int i = 0; i < kUnit; ++i)
        store_global(y.first + n * y.stride_bytes + (k + i) * T::kBytes,
                     family.template element<T>(parameters, word, i));
    }
}

template <class Family>
qcts_status dequantize(const qcts_problem& p) {
  return with_type(p.w_dtype, [&](auto type) {
    using T = decltype(type);
    using Codes = typename Family::Codes;
    const Family family(p);
    const Rows y = {static_cast<uint8_t*>(p.y), p.ldy_bytes, p.n, p.k};
    if (p.k % Codes::kPer16 == 0 && family.length % T::kChunk == 0 && is_multiple_of_16(family.codes) &&
        has_aligned_rows(p.y, p.n, p.ldy_bytes))
      return launch(p,
                    {.blocks_x = blocks_for(p.n, kBlockWarps) * blocks_for(p.k, Codes::kTile),
                     .threads = kBlockThreads,
                     .shared_bytes = kSharedBytes},
                    dequantize_tiles<T, Family>, family, y);
    return launch(p,
                  {.blocks_x = p.n < kMaxGridX ? p.n : kMaxGridX,
                   .threads = kBlockThreads,
                   .shared_bytes = kSharedBytes},
                  dequantize_units<T, Family>, family, y);
  });
}

}  // namespace
}  // namespace qcts::sm80
