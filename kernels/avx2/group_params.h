// SPDX-License-Identifier: BSD-3-Clause
// Parameters of groups in planes of shape [groups, n], for the AVX2 variants of quantize and dequantize.
// The parameters of one row are n elements apart. This distance is often a multiple of 4096 bytes.
// Then 8 parameters fill a set of L1, and reading a single row misses on each parameter.
// So 16 rows, whose parameters share cache lines, are taken together.
// 32 groups of these rows pass through a buffer at a time.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kTileRows = 16, kTileGroups = 32;

// Elements of kBytes each, indexed [row][group].
template <int kBytes>
struct ParameterTile {
  alignas(32) char data[kTileRows * kTileGroups * kBytes];
  char* at(int64_t row, int64_t group) { return data + (row * kTileGroups + group) * kBytes; }
  const char* at(int64_t row, int64_t group) const { return data + (row * kTileGroups + group) * kBytes; }
};

// A rectangle of rows and groups.
struct Tile {
  int64_t first_n, rows, first_group, groups;
};

// Calls body(tile) for the rows [first, last) of a weight that has `groups` groups per row.
template <class Body>
[[gnu::always_inline]] inline void for_tiles(int64_t first, int64_t last, int64_t groups, const Body& body) {
  for (int64_t n = first; n < last; n += kTileRows)
    for (int64_t g = 0; g < groups; g += kTileGroups)
      body(Tile{n, last - n < kTileRows ? last - n : kTileRows, g,
                groups - g < kTileGroups ? groups - g : kTileGroups});
}

// Copy a tile from and to a plane [groups, n_count].
// load_tile prefetches the parameters of the next rows,
// because the parameters of each group are on a cache line far from those of the previous group.
template <int kBytes>
void load_tile(const Tile& tile, const void* plane, int64_t n_count, ParameterTile<kBytes>* to) {
  for (int64_t g = 0; g < tile.groups; ++g) {
    const char* from =
        static_cast<const char*>(plane) + ((tile.first_group + g) * n_count + tile.first_n) * kBytes;
    _mm_prefetch(from + kTileRows * kBytes, _MM_HINT_T0);
    for (int64_t row = 0; row < tile.rows; ++row) std::memcpy(to->at(row, g), from + row * kBytes, kBytes);
  }
}
template <int kBytes>
void store_tile(const Tile& tile, ParameterTile<kBytes>* from, int64_t n_count, void* plane) {
  for (int64_t g = 0; g < tile.groups; ++g) {
    char* to = static_cast<char*>(plane) + ((tile.first_group + g) * n_count + tile.first_n) * kBytes;
    for (int64_t row = 0; row < tile.rows; ++row) std::memcpy(to + row * kBytes, from->at(row, g), kBytes);
  }
}

}  // namespace
}  // namespace qcts::avx2
