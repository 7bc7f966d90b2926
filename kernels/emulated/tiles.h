// SPDX-License-Identifier: BSD-3-Clause
// Tile registers in memory, for the emulated plug-in.
// The AMX instructions that the kernels use work as the Intel SDM defines them.
// Volume 1, chapter 18 describes tiles.
// Volume 2 describes LDTILECFG, TILELOADD, TILESTORED, TILEZERO, TILERELEASE, TDPBSUD and TDPBF16PS.
// If hardware would raise #UD or #GP, the program is aborted.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int kEmulatedTileBytes = 64, kEmulatedTileRows = 16;

struct EmulatedTiles {
  struct Tile {
    uint32_t rows, row_bytes;  // 0 if the tile is not configured
    alignas(64) uint8_t bytes[kEmulatedTileRows][kEmulatedTileBytes];
  };
  Tile tiles[8];
};
// Returns the registers of the calling thread.
inline EmulatedTiles& emulated_tiles() {
  thread_local EmulatedTiles registers = {};
  return registers;
}
[[maybe_unused]] inline void emulated_fault_unless(bool fine) {
  if (!fine) __builtin_trap();
}
inline EmulatedTiles::Tile& emulated_tile(int index) {
  EmulatedTiles::Tile& tile = emulated_tiles().tiles[index];
  emulated_fault_unless(tile.rows > 0);
  return tile;
}

// The configuration has 64 bytes:
// palette, start_row, 14 reserved bytes, row bytes of 16 tiles, rows of 16 tiles.
[[maybe_unused]] inline void emulated_tile_loadconfig(const void* from) {
  uint8_t config[64];
  std::memcpy(config, from, sizeof config);
  emulated_fault_unless(config[0] == 1 && config[1] == 0);
  for (int i = 2; i < 16; ++i) emulated_fault_unless(config[i] == 0);
  for (int i = 0; i < 16; ++i) {
    uint16_t row_bytes;
    std::memcpy(&row_bytes, config + 16 + 2 * i, 2);
    const uint8_t rows = config[48 + i];
    emulated_fault_unless(i < 8 ? row_bytes <= kEmulatedTileBytes && rows <= kEmulatedTileRows &&
                                      (row_bytes == 0) == (rows == 0)
                                : row_bytes == 0 && rows == 0);
    if (i >= 8) continue;
    emulated_tiles().tiles[i] = {};
    emulated_tiles().tiles[i].rows = rows;
    emulated_tiles().tiles[i].row_bytes = row_bytes;
  }
}
[[maybe_unused]] inline void emulated_tile_release() { emulated_tiles() = {}; }

[[maybe_unused]] inline void emulated_tile_zero(int index) {
  EmulatedTiles::Tile& tile = emulated_tile(index);
  std::memset(tile.bytes, 0, sizeof tile.bytes);
}
// A load sets the parts of a tile that it does not reach to zero.
[[maybe_unused]] inline void emulated_tile_loadd(int index, const void* from, int64_t stride_bytes) {
  EmulatedTiles::Tile& tile = emulated_tile(index);
  std::memset(tile.bytes, 0, sizeof tile.bytes);
  for (uint32_t row = 0; row < tile.rows; ++row)
    std::memcpy(tile.bytes[row], static_cast<const char*>(from) + row * stride_bytes, tile.row_bytes);
}
[[maybe_unused]] inline void emulated_tile_stored(int index, void* to, int64_t stride_bytes) {
  const EmulatedTiles::Tile& tile = emulated_tile(index);
  for (uint32_t row = 0; row < tile.rows; ++row)
    std::memcpy(static_cast<char*>(to) + row * stride_bytes, tile.bytes[row], tile.row_bytes);
}

struct EmulatedOperands {
  EmulatedTiles::Tile &sum, &a, &b;
};
inline EmulatedOperands emulated_operands(int sum, int a, int b) {
  emulated_fault_unless(sum != a && sum != b && a != b);
  const EmulatedOperands of = {emulated_tile(sum), emulated_tile(a), emulated_tile(b)};
  emulated_fault_unless(of.sum.rows == of.a.rows && of.sum.row_bytes == of.b.row_bytes &&
                        of.a.row_bytes == 4 * of.b.rows && of.sum.row_bytes % 4 == 0);
  return of;
}

// Adds four products of signed a and unsigned b to a lane. Nothing saturates.
[[maybe_unused]] inline void emulated_tile_dpbsud(int sum_index, int a_index, int b_index) {
  const EmulatedOperands of = emulated_operands(sum_index, a_index, b_index);
  for (uint32_t m = 0; m < of.a.rows; ++m) {
    int32_t sums[kEmulatedTileRows];
    std::memcpy(sums, of.sum.bytes[m], sizeof sums);
    for (uint32_t k = 0; k < of.b.rows; ++k) {
      int8_t a[4];
      std::memcpy(a, &of.a.bytes[m][4 * k], 4);
      for (int n = 0; n < kEmulatedTileRows; ++n) {
        const uint8_t* b = &of.b.bytes[k][4 * n];
        sums[n] += a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
      }
    }
    std::memcpy(of.sum.bytes[m], sums, sizeof sums);
  }
}

// Replaces a subnormal number with zero, on input and output.
inline float emulated_flush(float value) {
  return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value;
}
inline float emulated_bfloat16(const uint8_t* from) {
  const uint32_t bits = static_cast<uint32_t>(from[0]) << 16 | static_cast<uint32_t>(from[1]) << 24;
  float value;
  std::memcpy(&value, &bits, 4);
  return emulated_flush(value);
}

// Even and odd elements are two chains of fused multiply-adds that begin at 0.
// The sum of both chains is added to the lane. Every result is rounded to nearest even.
[[maybe_unused]] inline void emulated_tile_dpbf16ps(int sum_index, int a_index, int b_index) {
  const EmulatedOperands of = emulated_operands(sum_index, a_index, b_index);
  for (uint32_t m = 0; m < of.a.rows; ++m) {
    float sums[kEmulatedTileRows], even[kEmulatedTileRows] = {}, odd[kEmulatedTileRows] = {};
    std::memcpy(sums, of.sum.bytes[m], sizeof sums);
    for (uint32_t k = 0; k < of.b.rows; ++k) {
      const float first = emulated_bfloat16(&of.a.bytes[m][4 * k]),
                  second = emulated_bfloat16(&of.a.bytes[m][4 * k + 2]);
      for (int n = 0; n < kEmulatedTileRows; ++n) {
        const uint8_t* b = &of.b.bytes[k][4 * n];
        even[n] = emulated_flush(std::fma(first, emulated_bfloat16(b), even[n]));
        odd[n] = emulated_flush(std::fma(second, emulated_bfloat16(b + 2), odd[n]));
      }
    }
    for (int n = 0; n < kEmulatedTileRows; ++n)
      sums[n] = emulated_flush(emulated_flush(sums[n]) + emulated_flush(even[n] + odd[n]));
    std::memcpy(of.sum.bytes[m], sums, sizeof sums);
  }
}

}  // namespace

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbsud
#undef _tile_dpbf16ps
#define _tile_loadconfig(from) emulated_tile_loadconfig(from)
#define _tile_release() emulated_tile_release()
#define _tile_zero(tile) emulated_tile_zero(tile)
#define _tile_loadd(tile, from, stride) emulated_tile_loadd(tile, from, stride)
#define _tile_stored(tile, to, stride) emulated_tile_stored(tile, to, stride)
#define _tile_dpbsud(sum, a, b) emulated_tile_dpbsud(sum, a, b)
#define _tile_dpbf16ps(sum, a, b) emulated_tile_dpbf16ps(sum, a, b)
