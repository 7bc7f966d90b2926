// SPDX-License-Identifier: BSD-3-Clause
// The frame of dequantize. It reads codes once and writes floats once, so it is bound by bytes. Both sides
// move 16 bytes per lane (sm80/stage.h). A warp handles one tile. If row addresses are not multiples of 16,
// or the codes of a row do not fill 16 bytes, each lane handles one unit of elements instead.
//
// A Family has
//   Family(problem)                   called on the host; a plain struct that is passed to the device
//   codes                             the first byte of the codes of n * k elements, of type Codes
//   kUnit                             number of elements whose codes must be read together; divides k
//   length                            number of elements along k that share parameters
//   parameters<T>(n, k)               parameters of the elements from k on: a chunk of T, or a unit
//   element<T>(parameters, words, i)  bits of element k + i, from the codes, rounded as the scheme says
//   kGroupMajor, tile<T>()            optional: see sm80/group_major.h
//   kTable, fill_table()              whether it needs a table after the stages; the function that fills it
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/group_major.h"

namespace qcts::sm80 {
namespace {

// y [n,k], whose rows are stride_bytes apart.
struct Rows {
  uint8_t* first;
  int64_t stride_bytes, n, k;
  TileShape shape;
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
  const TileShape shape = y.shape;
  const auto across = static_cast<uint32_t>((y.k + (1 << shape.shift) - 1) >> shape.shift);
  const int64_t tile = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  const int64_t first_n = shape.row(Codes::kTile) * (tile / across), first_k = tile % across << shape.shift;
  if (first_n >= y.n) return;
  uint8_t* stage = stage_of_warp();
  const auto lane = static_cast<int>(lane_index());
  const int64_t n = first_n + shape.row(lane * Codes::kPer16),
                k = first_k + shape.column(lane * Codes::kPer16);
  if (n < y.n && k < y.k)
    store_shared(stage + 16 * lane, load_stream(family.codes + (n * y.k + k) / Codes::kUnit));
  if constexpr (kIsGroupMajor<Family>) family.template tile<T>().load(shape, first_n, first_k);
  sync_warp();
  QCTS_UNROLL
  for (int segment = 0; segment < Chunk<T, Codes>::kSegments; ++segment) {
    const int e = Chunk<T, Codes>::first(segment);
    const int64_t row = first_n + shape.row(e), column = first_k + shape.column(e);
    if (row >= y.n || column >= y.k) continue;
    uint32_t words[2] = {};
    Chunk<T, Codes>::load(stage, segment, words);
    const auto parameters = [&] {
      if constexpr (kIsGroupMajor<Family>)
        return family.template staged<T>(family.template tile<T>().of(shape, first_n, first_k, row, column));
      else
        return family.template parameters<T>(row, column);
    }();
    Words4 chunk = {};
    QCTS_UNROLL
    for (int i = 0; i < T::kChunk; ++i)
      set_element<T>(chunk, i, family.template element<T>(parameters, words, i));
    store_global(y.first + row * y.stride_bytes + column * T::kBytes, chunk);
  }
}

template <class T, class Family>
__global__ void __launch_bounds__(kBlockThreads) dequantize_units(const Family family, const Rows y) {
  constexpr int kUnit = Family::kUnit, kElements = kBlockThreads * kUnit;
  begin_table(family);
  const auto parts = static_cast<uint32_t>((y.k + kElements - 1) / kElements);
  const int64_t n = block_x() / parts,
                k = static_cast<int64_t>(block_x() % parts) * kElements + thread_index() * kUnit;
  if (k >= y.k) return;
  const uint8_t* codes = family.codes + (n * y.k + k) / Family::Codes::kUnit;
  uint32_t word[1] = {0};
  QCTS_UNROLL
  for (int byte = 0; byte < kUnit * Family::Codes::kBits / 8; ++byte)
    word[0] |= static_cast<uint32_t>(load_global<uint8_t>(codes + byte)) << (8 * byte);
  const auto parameters = family.template parameters<T>(n, k);
  uint8_t* to = y.first + n * y.stride_bytes + k * T::kBytes;
  QCTS_UNROLL
  for (int i = 0; i < kUnit; ++i)
    store_global(to + i * T::kBytes, family.template element<T>(parameters, word, i));
}

template <class Family>
qcts_status dequantize(const qcts_problem& p) {
  return with_type(p.w_dtype, [&](auto type) {
    using T = decltype(type);
    using Codes = typename Family::Codes;
    const Family family(p);
    const TileShape shape = shape_of<Family>(1);
    const Rows y = {static_cast<uint8_t*>(p.y), p.ldy_bytes, p.n, p.k, shape};
    if (p.k % Codes::kPer16 == 0 && family.length % T::kChunk == 0 && is_multiple_of_16(family.codes) &&
        has_aligned_pairs(family) && has_aligned_rows(p.y, p.n, p.ldy_bytes))
      return launch(p,
                    {.blocks_x = blocks_of_tiles<Family>(shape, p.n, p.k),
                     .threads = kBlockThreads,
                     .shared_bytes = kTileSharedBytes<Family>},
                    dequantize_tiles<T, Family>, family, y);
    return launch(p,
                  {.blocks_x = p.n * blocks_for(p.k, kBlockThreads * Family::kUnit),
                   .threads = kBlockThreads,
                   .shared_bytes = kSharedBytes},
                  dequantize_units<T, Family>, family, y);
  });
}

}  // namespace
}  // namespace qcts::sm80
