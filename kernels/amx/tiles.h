// SPDX-License-Identifier: BSD-3-Clause
// Tiles for the AMX variants compute sums += x * weights for a block of 64 columns,
// in steps of 64 bytes along k. A step covers 64 values of k in bytes or 32 in bfloat16.
//
// A tile of x is 16 rows of 64 bytes. A tile of weights covers 16 columns.
// A tile of weights also has 16 rows of 64 bytes; 4 consecutive bytes are consecutive elements of one column.
// A step of a block is 4 such tiles side by side, 256 bytes per row.
//
// An Emerald Rapids core did 5.8 trillion byte operations per second from registers.
// The core did 4.2 to 4.5 trillion with weights from L2.
// The core did 5.6 trillion when a panel with 512 values of k stayed in L1 while the rows of x passed.
// So a panel has 512 values of k and two tiles of columns (at most 32 KiB),
// and all rows are multiplied by it. A pass takes two tiles of rows at a time, with 4 loads for 4 products.
// With up to 16 rows, one tile of x is multiplied by 4 tiles of weights,
// which come from memory and are used once.
// The speed of these kernels has not been compared with those figures.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::amx {
namespace {

constexpr int kColumns = 64, kTileRows = 16;
constexpr int kRowBytes = 4 * kColumns;  // size in bytes of a row of sums, and of a row in a step of weights
constexpr int64_t kStepBytes = kTileRows * kRowBytes;  // size in bytes of a step of weights
constexpr int64_t kChunkSteps = 8;                     // steps in a chunk: 512 values of k in bytes
constexpr int kRows = 512;  // rows of x that are multiplied by one panel; their sums take 128 KiB
constexpr int kPrefetchBytes = 8192;

// Palette 1: tiles 0 to 3 hold sums, tiles 4 and 5 hold rows of x, tiles 6 and 7 hold weights.
struct alignas(64) TileConfig {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

// Returns the number of rows of x that the tiles read.
// Up to 16 rows fill a smaller tile; more rows are padded to whole tiles.
[[maybe_unused]] int64_t padded_rows(int64_t m) {
  return m <= kTileRows ? m : (m + kTileRows - 1) / kTileRows * kTileRows;
}

// Configures the tiles of the calling thread for m rows of x, in steps of at most 64 bytes along k.
// The barriers are needed because GCC 12 assumes that the configuration is 8 bytes long
// and that tile loads read no memory.
[[maybe_unused]] void open_tiles(int64_t m, int64_t step_k_bytes = 64) {
  TileConfig config = {};
  config.palette = 1;
  for (int tile = 0; tile < 8; ++tile) {
    config.row_bytes[tile] = static_cast<uint16_t>(tile == 4 || tile == 5 ? step_k_bytes : 64);
    const int64_t rows = tile < 6 ? (m < kTileRows ? m : kTileRows) : step_k_bytes / 4;
    config.rows[tile] = static_cast<uint8_t>(rows);
  }
  __asm__ volatile("" ::"r"(&config) : "memory");
  _tile_loadconfig(&config);
}
[[maybe_unused]] void release_tiles() { _tile_release(); }

struct Operands {
  const uint8_t* weights;
  int64_t steps;
  const void* x;
  int64_t ldx_bytes;
  bool first;  // sums begin at 0
};

// A barrier: stores to memory that tiles load afterwards happen before it.
// Tile stores need no barrier, because GCC knows that they write to memory.
[[gnu::always_inline]] inline void see_stores() { __asm__ volatile("" ::: "memory"); }

#define QCTS_TILE_DOT(sum, x, weights) \
  if constexpr (kBfloat16)             \
    _tile_dpbf16ps(sum, x, weights);   \
  else                                 \
    _tile_dpbsud(sum, x, weights)

[[maybe_unused]] void prefetch_step(const uint8_t* at) {
  for (int64_t line = 0; line < kStepBytes; line += 64)
    _mm_prefetch(reinterpret_cast<const char*>(at + kPrefetchBytes + line), _MM_HINT_T0);
}

// For at most 16 rows and 64 columns. Rows of sums are ld_bytes apart.
[[gnu::always_inline]] inline void zero_one() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}
[[gnu::always_inline]] inline void load_one(const char* sums, int64_t ld_bytes) {
  _tile_loadd(0, sums, ld_bytes);
  _tile_loadd(1, sums + 64, ld_bytes);
  _tile_loadd(2, sums + 128, ld_bytes);
  _tile_loadd(3, sums + 192, ld_bytes);
}
template <bool kBfloat16>
[[gnu::always_inline]] inline void step_one(const uint8_t* weights, const char* x, int64_t ldx_bytes) {
  _tile_loadd(4, x, ldx_bytes);
  _tile_loadd(6, weights, kRowBytes);
  QCTS_TILE_DOT(0, 4, 6);
  _tile_loadd(7, weights + 64, kRowBytes);
  QCTS_TILE_DOT(1, 4, 7);
  _tile_loadd(6, weights + 128, kRowBytes);
  QCTS_TILE_DOT(2, 4, 6);
  _tile_loadd(7, weights + 192, kRowBytes);
  QCTS_TILE_DOT(3, 4, 7);
}
[[gnu::always_inline]] inline void store_one(char* sums, int64_t ld_bytes) {
  _tile_stored(0, sums, ld_bytes);
  _tile_stored(1, sums + 64, ld_bytes);
  _tile_stored(2, sums + 128, ld_bytes);
  _tile_stored(3, sums + 192, ld_bytes);
}
template <bool kBfloat16>
void multiply_one(const Operands& of, const char* x, char* sums, int64_t ld_bytes, bool stream) {
  see_stores();
  if (of.first)
    zero_one();
  else
    load_one(sums, ld_bytes);
  for (int64_t step = 0; step < of.steps; ++step) {
    const uint8_t* at = of.weights + step * kStepBytes;
    if (stream) prefetch_step(at);
    step_one<kBfloat16>(at, x + step * 64, of.ldx_bytes);
  }
  store_one(sums, ld_bytes);
}

// Multiplies 32 rows by the 32 columns that begin at byte `left` of the rows of a step.
template <bool kBfloat16>
void multiply_two(const Operands& of, int64_t left, const char* x, char* sums, int64_t ld_bytes,
                  bool stream) {
  const char* x_below = x + kTileRows * of.ldx_bytes;
  char* below = sums + kTileRows * ld_bytes;
  see_stores();
  if (of.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, sums, ld_bytes);
    _tile_loadd(1, sums + 64, ld_bytes);
    _tile_loadd(2, below, ld_bytes);
    _tile_loadd(3, below + 64, ld_bytes);
  }
  for (int64_t step = 0; step < of.steps; ++step) {
    const uint8_t* at = of.weights + step * kStepBytes + left;
    if (stream) prefetch_step(at - left);
    _tile_loadd(4, x + step * 64, of.ldx_bytes);
    _tile_loadd(6, at, kRowBytes);
    QCTS_TILE_DOT(0, 4, 6);
    _tile_loadd(7, at + 64, kRowBytes);
    QCTS_TILE_DOT(1, 4, 7);
    _tile_loadd(5, x_below + step * 64, of.ldx_bytes);
    QCTS_TILE_DOT(2, 5, 6);
    QCTS_TILE_DOT(3, 5, 7);
  }
  _tile_stored(0, sums, ld_bytes);
  _tile_stored(1, sums + 64, ld_bytes);
  _tile_stored(2, below, ld_bytes);
  _tile_stored(3, below + 64, ld_bytes);
}

#undef QCTS_TILE_DOT

}  // namespace
}  // namespace qcts::amx
