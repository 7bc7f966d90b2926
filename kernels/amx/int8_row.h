// SPDX-License-Identifier: BSD-3-Clause
// Micro-kernel for kernels/vnni/int8_linear.h that uses TDPBSUD.
// The packed weight has the same bytes as for VPDPBUSD.
#pragma once

#include "kernels/amx/tiles.h"
#include "kernels/avx512/lanes.h"
#include "kernels/vnni/schemes.h"

namespace qcts::amx {
namespace {

// Fills sums[padded_rows(rows)][64]. Reads codes of one byte from memory.
[[maybe_unused]] void multiply_bytes(const Operands& of, int64_t rows, int32_t (*sums)[kColumns]) {
  const char* x = static_cast<const char*>(of.x);
  char* to = reinterpret_cast<char*>(sums);
  const int64_t pairs = rows > kTileRows ? (rows + kTileRows - 1) / kTileRows / 2 : 0;
  for (int64_t left = 0; left < kRowBytes; left += 128)
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t m = i * 2 * kTileRows;
      multiply_two<false>(of, left, x + m * of.ldx_bytes, to + m * kRowBytes + left, kRowBytes,
                          i == 0 && left == 0);
    }
  const int64_t m = pairs * 2 * kTileRows;
  if (m < rows) multiply_one<false>(of, x + m * of.ldx_bytes, to + m * kRowBytes, kRowBytes, pairs == 0);
}

struct Int8Tiles {
  static constexpr int kRows = amx::kRows;

  static constexpr int64_t chunk_steps(int, int64_t) { return kTileRows * kChunkSteps; }
  static int64_t padded_rows(int64_t m) { return amx::padded_rows(m); }
  static int tail_ahead_bytes(bool prefetches, int64_t) { return prefetches ? vnni::kPrefetchBytes : 0; }
  static constexpr int64_t chunk_groups(int64_t) { return 1; }
  static void open(const vnni::Layout&, int64_t m) { open_tiles(m); }
  static void close() { release_tiles(); }

  template <class Scheme>
  static void multiply(const vnni::PackedPanel& packed, int64_t rows, vnni::Sums sums) {
    static_assert(Scheme::kQuads == 1 && Scheme::pad_k(1) % 64 == 0);
    multiply_bytes({packed.codes, packed.steps / kTileRows, packed.x, packed.ldx, packed.first}, rows, sums);
  }
};

}  // namespace
}  // namespace qcts::amx
