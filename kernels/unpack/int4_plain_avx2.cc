// SPDX-License-Identifier: BSD-3-Clause
// Unpacks codes from MSLK's preshuffled order (kernels/avx2/shuffle.h): the reverse of
// pack/int4_plain_avx2.cc, with the same limit. The tiles of a strip are n * 8 bytes apart and are prefetched
// two strips ahead. 64 rows go together, so that 512 bytes are read at each such place (EPYC Zen 4, 4096 x
// 4096, two threads: 0.75 to 0.86 of a copy, where 16 rows reach 0.49 to 0.54; pack, which writes there, is
// 1.3 times as fast with 16).
#include "kernels/avx2/shuffle.h"

namespace {

using namespace qcts::avx2;

constexpr int64_t kRowsAtOnce = 4 * kTileSide;

// Splits 16 bytes of each of four tiles into 32 bytes of rows r and r + 8.
[[gnu::always_inline]] inline void split_rows(const uint8_t* const (&tiles)[4], int64_t offset, uint8_t* low,
                                              uint8_t* high) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i apart =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const auto two = [&](const uint8_t* left, const uint8_t* right) {
    const __m256i both = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(right + offset),
                                             reinterpret_cast<const __m128i*>(left + offset));
    return _mm256_shuffle_epi8(both, apart);
  };
  const __m256i first = two(tiles[0], tiles[2]), second = two(tiles[1], tiles[3]);
  const __m256i even = _mm256_unpacklo_epi64(first, second), odd = _mm256_unpackhi_epi64(first, second);
  const __m256i a =
      _mm256_or_si256(_mm256_and_si256(even, nibble), _mm256_andnot_si256(nibble, _mm256_slli_epi16(odd, 4)));
  const __m256i b =
      _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(even, 4), nibble), _mm256_andnot_si256(nibble, odd));
  _mm256_store_si256(reinterpret_cast<__m256i*>(low), a);
  _mm256_store_si256(reinterpret_cast<__m256i*>(high), b);
}

void unpack_strip(const qcts_problem& p, const ShufflePlanes& planes, int64_t n, int64_t at, int64_t tiles) {
  alignas(64) uint8_t rows[kTileSide * kStripBytes];
  alignas(64) constexpr uint8_t kNoTile[kTileBytes] = {};
  const int64_t row_bytes = p.k / 2, step = tile_offset(p, 0, kTileRowBytes);
  const uint8_t* from = planes.in + tile_offset(p, n, at);
  const int64_t next = at + 2 * kStripBytes < row_bytes
                           ? 2 * kStripTiles * step
                           : kTileBytes - (row_bytes / kTileRowBytes - 2 * kStripTiles) * step;
  const uint8_t* tile[kStripTiles];
#pragma GCC unroll 8
  for (int64_t i = 0; i < kStripTiles; ++i) {
    tile[i] = i < tiles ? from + i * step : kNoTile;
    _mm_prefetch(from + i * step + next, _MM_HINT_T0);
    _mm_prefetch(from + i * step + next + 64, _MM_HINT_T0);
  }
  for (int64_t r = 0; r < kTileSide / 2; ++r) {
    uint8_t *low = rows + r * kStripBytes, *high = low + kTileSide / 2 * kStripBytes;
    split_rows({tile[0], tile[1], tile[2], tile[3]}, r * kPairBytes, low, high);
    split_rows({tile[4], tile[5], tile[6], tile[7]}, r * kPairBytes, low + 32, high + 32);
  }
  for (int64_t r = 0; r < kTileSide; ++r)
    copy_out(planes.out + (n + r) * row_bytes + at, rows + r * kStripBytes, tiles * kTileRowBytes,
             planes.past_caches);
}

}  // namespace

const qcts_kernel qcts_kernel_unpack_int4_plain_avx2 = qcts::exact_entry(
    QCTS_OP_UNPACK, "int4_plain", "avx2", "nibbles of two rows split, eight tiles at a time; bound by memory",
    {qcts::supports_problem<qcts_kernel_unpack_int4_plain_avx2>,
     qcts::run_checked<qcts_kernel_unpack_int4_plain_avx2, shuffle_codes<unpack_strip, kRowsAtOnce>>});
