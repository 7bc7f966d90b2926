// SPDX-License-Identifier: BSD-3-Clause
// Tiles of families that keep the parameters of a group side by side for all rows, as int4 does. With one row
// of codes, each parameter would need its own sector. So a tile has 16 rows of 64 nibbles, which are one
// sector per row. For longer groups it has fewer rows. The warp moves the parameters of 16 rows at once,
// through shared memory.
#pragma once

#include "kernels/cuda/launch.h"
#include "kernels/sm80/stage.h"

namespace qcts::sm80 {
namespace {

template <class Family>
constexpr bool kIsGroupMajor = requires { Family::kGroupMajor; };
// All columns of a tile belong to one row, unless the family is group major. `length` is the number of
// elements that must stay together.
template <class Family>
TileShape shape_of([[maybe_unused]] int64_t length) {
  TileShape shape = {Family::Codes::kBits == 4 ? 10u : 9u};
  if constexpr (kIsGroupMajor<Family>)
    for (shape.shift = 6; int64_t{1} << shape.shift < length;) ++shape.shift;
  return shape;
}
// Returns the number of blocks for all tiles of a matrix. A warp handles one tile.
template <class Family>
int64_t blocks_of_tiles(TileShape shape, int64_t rows, int64_t k) {
  const int64_t down = Family::Codes::kTile >> shape.shift, columns = int64_t{1} << shape.shift;
  return blocks_for(blocks_for(rows, down) * blocks_for(k, columns), kBlockWarps);
}

// The longest list has 16 rows of 9 groups. 64 columns touch at most 9 groups, since each is at least 8 long.
constexpr uint32_t kParameterBytes = 16 * 9 * 8;
template <class Family>
constexpr uint32_t kTileSharedBytes =
    kSharedBytes + (kIsGroupMajor<Family> ? kBlockWarps * kParameterBytes : 0);

template <int kBytes>
struct PairOf {
  using Type = Words2;
};
template <>
struct PairOf<2> {
  using Type = uint32_t;
};

// Pairs of parameters of T. `first` holds them for all rows of a group. With kSplit, they are in two planes.
template <class T, bool kSplit>
struct TileParameters {
  using Bits = typename T::Bits;
  using Pair = typename PairOf<T::kBytes>::Type;
  uint8_t *first, *second;
  int64_t n;
  uint32_t k, length;

  // Returns the place of a pair in shared memory.
  static QCTS_DEVICE uint8_t* at(uint32_t i) {
    return shared_memory() + kSharedBytes + warp_index() * kParameterBytes + i * 2 * T::kBytes;
  }
  static QCTS_DEVICE uint32_t rows(TileShape shape) { return 1024u >> shape.shift; }
  // Returns the place of the pair for element (row, column) of the tile that begins at (first_n, first_k).
  QCTS_DEVICE uint8_t* of(TileShape shape, int64_t first_n, int64_t first_k, int64_t row,
                          int64_t column) const {
    const uint32_t group = static_cast<uint32_t>(column) / length - static_cast<uint32_t>(first_k) / length;
    return at(group * rows(shape) + static_cast<uint32_t>(row - first_n));
  }
  // Calls move(place in shared memory, index in the planes) for each pair of this lane. Consecutive lanes
  // have consecutive rows.
  template <class Move>
  QCTS_DEVICE void each(TileShape shape, int64_t first_n, int64_t first_k, const Move& move) const {
    const uint32_t begin = static_cast<uint32_t>(first_k), columns = 1u << shape.shift;
    const uint32_t end = k - begin < columns ? k : begin + columns;
    const uint32_t group = begin / length, groups = (end - 1) / length - group + 1;
    for (uint32_t i = lane_index(); i < groups * rows(shape); i += 32)
      if (const int64_t row = first_n + i % rows(shape); row < n)
        move(at(i), (static_cast<int64_t>(group) + i / rows(shape)) * n + row);
  }
  QCTS_DEVICE void load(TileShape shape, int64_t first_n, int64_t first_k) const {
    each(shape, first_n, first_k, [this](uint8_t* to, int64_t index) {
      if constexpr (kSplit) {
        store_shared(to, load_global<Bits>(first + index * T::kBytes));
        store_shared(to + T::kBytes, load_global<Bits>(second + index * T::kBytes));
      } else {
        store_shared(to, load_global<Pair>(first + index * 2 * T::kBytes));
      }
    });
  }
  QCTS_DEVICE void store(TileShape shape, int64_t first_n, int64_t first_k) const {
    each(shape, first_n, first_k, [this](const uint8_t* from, int64_t index) {
      if constexpr (kSplit) {
        store_global(first + index * T::kBytes, load_shared<Bits>(from));
        store_global(second + index * T::kBytes, load_shared<Bits>(from + T::kBytes));
      } else {
        store_global(first + index * 2 * T::kBytes, load_shared<Pair>(from));
      }
    });
  }
};

// On the host: returns true if each pair can be moved at once.
template <class Family>
bool has_aligned_pairs([[maybe_unused]] const Family& family) {
  if constexpr (kIsGroupMajor<Family>) return reinterpret_cast<uintptr_t>(family.pairs()) % 8 == 0;
  return true;
}

}  // namespace
}  // namespace qcts::sm80
