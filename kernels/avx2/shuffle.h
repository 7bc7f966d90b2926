// SPDX-License-Identifier: BSD-3-Clause
// Converts between rows of int4_plain and the preshuffled order of MSLK (kernels/scalar/shuffle.h),
// for the AVX2 variants of pack and unpack.
//
// A tile of 16 rows and 16 values of k is 128 bytes. Tiles with the same k are consecutive along n.
// Rows r and r + 8 of a tile, 8 bytes each, make 16 bytes of it.
// E0 .. E7 are the even codes of both rows, joined with row r in the low nibbles.
// O0 .. O7 are the odd codes of both rows, joined in the same way.
// The 16 bytes are ordered E0 E4 O0 O4, E1 E5 O1 O5 and so on.
// 32 bytes of both rows, the share of four tiles,
// take 12 operations in either direction, so memory limits the speed.
// A strip consists of one cache line of each of 16 rows. It has eight tiles, which are n * 8 bytes apart.
// The tiles are put together in L1, so that the two cache lines of each tile are written at once.
#pragma once

#include "kernels/avx2/elements.h"
#include "kernels/avx2/stores.h"
#include "kernels/families/copy_planes.h"

namespace qcts::avx2 {
namespace {

constexpr int64_t kTileSide = 16, kTileBytes = 128, kTileRowBytes = 8, kPairBytes = 16;
constexpr int64_t kStripBytes = 64, kStripTiles = kStripBytes / kTileRowBytes;

struct ShufflePlanes {
  const uint8_t* in;
  uint8_t* out;
  bool past_caches;
};
[[maybe_unused]] ShufflePlanes shuffle_planes(const qcts_problem& p) {
  auto* out = static_cast<uint8_t*>(out_plane(p, "qdata"));
  return {static_cast<const uint8_t*>(in_plane(p, "qdata")), out,
          is_past_caches(out, p.n * p.k / 2, p.k / 2)};
}

// Returns the offset of the tile whose rows start at n and whose first codes are at byte `at` of a row.
[[maybe_unused]] int64_t tile_offset(const qcts_problem& p, int64_t n, int64_t at) {
  return (at / kTileRowBytes * (p.n / kTileSide) + n / kTileSide) * kTileBytes;
}

// Copies `bytes` bytes, a multiple of 8.
[[maybe_unused]] void copy_out(uint8_t* to, const uint8_t* from, int64_t bytes, bool past_caches) {
  int64_t i = 0;
  for (; i + 32 <= bytes; i += 32)
    store32(to + i, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)), past_caches);
  std::memcpy(to + i, from + i, static_cast<size_t>(bytes - i));
}

// Converts `tiles` tiles, at most one strip. They start at row n and at byte `at` of a row.
using Strip = void (*)(const qcts_problem& p, const ShufflePlanes& planes, int64_t n, int64_t at,
                       int64_t tiles);

// Converts rows [first, last), both multiples of 16.
// Takes kRowsAtOnce rows strip by strip, then the next kRowsAtOnce rows.
template <Strip kStrip, int64_t kRowsAtOnce>
void convert_strips(void* context, int64_t first, int64_t last) {
  const qcts_problem& p = *static_cast<const qcts_problem*>(context);
  const ShufflePlanes planes = shuffle_planes(p);
  const int64_t row_bytes = p.k / 2;
  for (int64_t n0 = first; n0 < last; n0 += kRowsAtOnce)
    for (int64_t at = 0; at < row_bytes; at += kStripBytes) {
      const int64_t left = (row_bytes - at) / kTileRowBytes;
      for (int64_t n = n0; n < last && n < n0 + kRowsAtOnce; n += kTileSide)
        kStrip(p, planes, n, at, left < kStripTiles ? left : kStripTiles);
    }
  _mm_sfence();
}

// Converts the codes and copies the parameters.
template <Strip kStrip, int64_t kRowsAtOnce>
void shuffle_codes(const qcts_problem* problem) {
  qcts_problem copy = *problem;
  copy_planes_but(copy, "qdata");
  parallel_for(copy.threads, copy.n, kTileSide, convert_strips<kStrip, kRowsAtOnce>, &copy);
}

}  // namespace
}  // namespace qcts::avx2
