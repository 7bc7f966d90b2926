// SPDX-License-Identifier: BSD-3-Clause
// The frames of quantize and quantize_activation. Elements that share a scale form a run: part of a row, a
// row, or a block of several rows. Floats are read from memory once and codes are written once, both 16 bytes
// per lane (sm80/stage.h). So the kernels are bound by bytes, unless a division per element limits them.
//   quantize_groups   short runs: a warp handles a tile of codes, and a few consecutive lanes have a run
//   quantize_runs     all others: a warp or a block has a run, and reads it a second time from L1 or L2
// One scale for all elements takes a pass over them first (largest_of_all), and a run is then a row.
//
// A Family has
//   Codes, codes             the type of its codes, and the address of their first byte
//   Range                    the information that it needs about a run (sm80/ranges.h)
//   kUnit                    number of elements whose codes share bytes
//   scale<T>(range, run)     returns its Scale
//   store<T>(run, scale)     stores the part of the scale that the planes hold; called once for each run
//   encode<T, kCount>(scale, x, index, valid, words)
//                            puts codes of elements index .. of all n * k into zeroed words; kCount is a
//                            chunk of T or a unit; for a chunk, all lanes of the warp call it together
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/group_major.h"
#include "kernels/sm80/ranges.h"

namespace qcts::sm80 {
namespace {

// x [rows,k]. Runs are counted along k, then down. Each run has `down` rows of `length` elements.
struct Runs {
  const uint8_t* x;
  int64_t stride_bytes, rows, k;
  uint32_t length, down;
  uint32_t warps;   // warps that a run has: 1, or all of a block
  TileShape shape;  // used by quantize_groups

  struct Place {
    int64_t n, k;
  };
  // Returns the place of element e of a run. A run may continue in the next row, but then `down` is 1.
  QCTS_DEVICE Place place(int64_t run, uint32_t e) const {
    if (k % length != 0) return {(run * length + e) / k, (run * length + e) % k};
    const uint32_t across = static_cast<uint32_t>(k) / length;
    const auto [band, column] = Place{run / across, run % across * length};
    return down == 1 ? Place{band, column + e} : Place{band * down + e / length, column + e % length};
  }
  QCTS_DEVICE int64_t count() const { return rows * k / (static_cast<int64_t>(length) * down); }
  QCTS_DEVICE const uint8_t* row(int64_t n) const { return x + n * stride_bytes; }
};

template <class T>
QCTS_DEVICE void decode_chunk(const Words4& chunk, float (&x)[T::kChunk]) {
  QCTS_UNROLL
  for (int i = 0; i < T::kChunk; ++i) x[i] = T::decode_all(element<T>(chunk, i));
}

// Lane l stores the l-th 16 bytes of the stage, if `to` is not NULL.
QCTS_DEVICE void store_stage(const uint8_t* stage, uint8_t* to) {
  sync_warp();
  if (to != nullptr) store_global(to, load_shared<Words4>(stage + 16 * lane_index()));
}

template <class T, class Family>
__global__ void __launch_bounds__(kBlockThreads) quantize_groups(const Family family, const Runs x) {
  using Codes = typename Family::Codes;
  const TileShape shape = x.shape;
  const auto tiles = static_cast<uint32_t>((x.k + (1 << shape.shift) - 1) >> shape.shift);
  const int64_t tile = static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  const int64_t first_n = shape.row(Codes::kTile) * (tile / tiles), first_k = tile % tiles << shape.shift;
  if (first_n >= x.rows) return;
  uint8_t* stage = stage_of_warp();
  const uint32_t lanes = x.length / T::kChunk, across = static_cast<uint32_t>(x.k) / x.length;
  QCTS_UNROLL
  for (int segment = 0; segment < Chunk<T, Codes>::kSegments; ++segment) {
    const int e = Chunk<T, Codes>::first(segment);
    const int64_t n = first_n + shape.row(e), k = first_k + shape.column(e);
    const bool valid = n < x.rows && k < x.k;
    float values[T::kChunk] = {};
    typename Family::Range range;
    if (valid) {
      decode_chunk<T>(load_stream(x.row(n) + k * T::kBytes), values);
      QCTS_UNROLL
      for (int i = 0; i < T::kChunk; ++i) range.add(values[i]);
    }
    merge_lanes(range, lanes);
    const int64_t run = n * across + static_cast<uint32_t>(k) / x.length;
    const auto scale = family.template scale<T>(range, run);
    if (valid && lane_index() % lanes == 0) {
      if constexpr (kIsGroupMajor<Family>)
        family.template stage<T>(
            family.template tile<T>(static_cast<uint32_t>(x.k)).of(shape, first_n, first_k, n, k), scale);
      else
        family.template store<T>(run, scale);
    }
    uint32_t words[2] = {};
    family.template encode<T, T::kChunk>(scale, values, n * x.k + k, valid, words);
    Chunk<T, Codes>::store(stage, segment, words);
  }
  const int e = static_cast<int>(lane_index()) * Codes::kPer16;
  const int64_t n = first_n + shape.row(e), k = first_k + shape.column(e);
  store_stage(stage, n < x.rows && k < x.k ? family.codes + (n * x.k + k) / Codes::kUnit : nullptr);
  if constexpr (kIsGroupMajor<Family>)
    family.template tile<T>(static_cast<uint32_t>(x.k)).store(shape, first_n, first_k);
}

// Calls visit(e) for the first element of each chunk or unit of this thread, in a run of `total` elements.
template <int kStep, class Visit>
QCTS_DEVICE void each_step(uint32_t member, uint32_t members, uint32_t total, const Visit& visit) {
  for (uint32_t e = member * kStep; e < total; e += members * kStep) visit(e);
}

template <class T, class Family>
QCTS_DEVICE void store_codes_by_tiles(const Family& family, const Runs& x, int64_t run,
                                      const typename Family::Scale& scale) {
  using Codes = typename Family::Codes;
  const uint32_t total = x.length * x.down;
  uint8_t* stage = stage_of_warp();
  for (uint32_t tile = warp_index() % x.warps * Codes::kTile; tile < total; tile += x.warps * Codes::kTile) {
    QCTS_UNROLL
    for (int segment = 0; segment < Chunk<T, Codes>::kSegments; ++segment) {
      const uint32_t e = tile + static_cast<uint32_t>(Chunk<T, Codes>::first(segment));
      const bool valid = e < total;
      const Runs::Place at = x.place(run, valid ? e : 0);
      float values[T::kChunk] = {};
      if (valid) decode_chunk<T>(load_global<Words4>(x.row(at.n) + at.k * T::kBytes), values);
      uint32_t words[2] = {};
      family.template encode<T, T::kChunk>(scale, values, at.n * x.k + at.k, valid, words);
      Chunk<T, Codes>::store(stage, segment, words);
    }
    const uint32_t e = tile + lane_index() * Codes::kPer16;
    const Runs::Place at = x.place(run, e < total ? e : 0);
    store_stage(stage, e < total ? family.codes + (at.n * x.k + at.k) / Codes::kUnit : nullptr);
    sync_warp();  // before the stage is filled again
  }
}

template <class T, class Family>
QCTS_DEVICE void store_codes_by_units(const Family& family, const Runs& x, int64_t run, uint32_t member,
                                      const typename Family::Scale& scale) {
  constexpr int kUnit = Family::kUnit;
  each_step<kUnit>(member, 32 * x.warps, x.length * x.down, [&](uint32_t e) {
    float values[kUnit];
    int64_t index = 0;
    QCTS_UNROLL
    for (int i = 0; i < kUnit; ++i) {
      const Runs::Place at = x.place(run, e + static_cast<uint32_t>(i));
      values[i] = load_element<T>(x.row(at.n), at.k);
      if (i == 0) index = at.n * x.k + at.k;
    }
    uint32_t words[2] = {};
    family.template encode<T, kUnit>(scale, values, index, true, words);
    QCTS_UNROLL
    for (int byte = 0; byte < kUnit * Family::Codes::kBits / 8; ++byte)
      store_global(family.codes + index / Family::Codes::kUnit + byte,
                   static_cast<uint8_t>(words[0] >> (8 * byte)));
  });
}

template <class T, class Family, bool kChunks>
__global__ void __launch_bounds__(kBlockThreads) quantize_runs(const Family family, const Runs x) {
  const bool is_block = x.warps != 1;
  const int64_t run = is_block ? block_x() : static_cast<int64_t>(block_x()) * kBlockWarps + warp_index();
  if (run >= x.count()) return;
  const uint32_t member = is_block ? thread_index() : lane_index(), total = x.length * x.down;
  typename Family::Range range;
  if constexpr (Family::Range::kWords != 0) {
    each_step<kChunks ? T::kChunk : 1>(member, 32 * x.warps, total, [&](uint32_t e) {
      const Runs::Place at = x.place(run, e);
      const uint8_t* from = x.row(at.n) + at.k * T::kBytes;
      if constexpr (kChunks) {
        float values[T::kChunk];
        decode_chunk<T>(load_global<Words4>(from), values);
        QCTS_UNROLL
        for (int i = 0; i < T::kChunk; ++i) range.add(values[i]);
      } else {
        range.add(load_element<T>(from, 0));
      }
    });
    merge_lanes(range, 32);
    if (is_block) merge_warps(range);
  }
  const auto scale = family.template scale<T>(range, run);
  if (member == 0) family.template store<T>(run, scale);
  if constexpr (kChunks)
    store_codes_by_tiles<T>(family, x, run, scale);
  else
    store_codes_by_units<T>(family, x, run, member, scale);
}

// On the host.

// Returns the float matrix of an op, with runs of `down` rows of `length` elements.
[[maybe_unused]] Runs runs_of(const qcts_problem& p, int64_t length, int64_t down = 1) {
  return {static_cast<const uint8_t*>(p.x),
          p.ldx_bytes,
          p.op == QCTS_OP_QUANTIZE ? p.n : p.m,
          p.k,
          static_cast<uint32_t>(length),
          static_cast<uint32_t>(down),
          1,
          {}};
}
[[maybe_unused]] uint32_t type_of_x(const qcts_problem& p) {
  return p.op == QCTS_OP_QUANTIZE ? p.w_dtype : p.x_dtype;
}

template <class T, class Family>
qcts_status quantize_typed(const qcts_problem& p, const Family& family, Runs x) {
  constexpr int64_t kPer16 = Family::Codes::kPer16;
  // A run with more elements than this has a block.
  constexpr int64_t kLongRun = 2048;
  const int64_t total = int64_t{x.length} * x.down, count = x.rows * x.k / total;
  const bool aligned = has_aligned_rows(x.x, x.rows, x.stride_bytes) && is_multiple_of_16(family.codes);
  const bool is_power = (x.length & (x.length - 1)) == 0;
  if (aligned && has_aligned_pairs(family) && x.down == 1 && x.k % kPer16 == 0 && is_power &&
      x.length >= T::kChunk && x.length <= 32 * T::kChunk && x.k % x.length == 0) {
    x.shape = shape_of<Family>(x.length);
    return launch(p,
                  {.blocks_x = blocks_of_tiles<Family>(x.shape, x.rows, x.k),
                   .threads = kBlockThreads,
                   .shared_bytes = kTileSharedBytes<Family>},
                  quantize_groups<T, Family>, family, x);
  }
  x.warps = total > kLongRun ? kBlockWarps : 1;
  const Launch at = {.blocks_x = x.warps == 1 ? blocks_for(count, kBlockWarps) : count,
                     .threads = kBlockThreads,
                     .shared_bytes = kSharedBytes};
  if (aligned && x.k % x.length == 0 && x.length % kPer16 == 0)
    return launch(p, at, quantize_runs<T, Family, true>, family, x);
  return launch(p, at, quantize_runs<T, Family, false>, family, x);
}

template <class Family>
qcts_status quantize(const qcts_problem& p, const Family& family, const Runs& x) {
  return with_type(type_of_x(p), [&](auto type) { return quantize_typed<decltype(type)>(p, family, x); });
}

}  // namespace
}  // namespace qcts::sm80
