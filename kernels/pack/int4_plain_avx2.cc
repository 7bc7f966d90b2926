// SPDX-License-Identifier: BSD-3-Clause
// Packs rows of codes into MSLK's preshuffled order (kernels/avx2/shuffle.h). 16 rows, often a multiple of
// 2048 bytes apart, are too many for the hardware prefetcher, so their lines are prefetched two strips ahead.
#include "kernels/avx2/shuffle.h"

namespace {

using namespace qcts::avx2;

constexpr int64_t kAheadBytes = 2 * kStripBytes;

// Joins 32 bytes of rows r and r + 8: 16 bytes for each of four tiles.
[[gnu::always_inline]] inline void join_rows(const uint8_t* low, const uint8_t* high, uint8_t* tiles) {
  const __m256i nibble = _mm256_set1_epi8(15);
  const __m256i halves =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low)),
                b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high));
  const __m256i even =
      _mm256_or_si256(_mm256_and_si256(a, nibble), _mm256_andnot_si256(nibble, _mm256_slli_epi16(b, 4)));
  const __m256i odd =
      _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(a, 4), nibble), _mm256_andnot_si256(nibble, b));
  const __m256i e = _mm256_shuffle_epi8(even, halves), o = _mm256_shuffle_epi8(odd, halves);
  const __m256i first = _mm256_unpacklo_epi16(e, o), second = _mm256_unpackhi_epi16(e, o);
  _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(tiles + 2 * kTileBytes), reinterpret_cast<__m128i*>(tiles),
                       first);
  _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(tiles + 3 * kTileBytes),
                       reinterpret_cast<__m128i*>(tiles + kTileBytes), second);
}

void pack_strip(const qcts_problem& p, const ShufflePlanes& planes, int64_t n, int64_t at, int64_t tiles) {
  alignas(64) uint8_t packed[kStripTiles * kTileBytes], ends[kTileSide * kStripBytes];
  int64_t row_bytes = p.k / 2;
  const uint8_t* rows = planes.in + n * row_bytes + at;
  const int64_t next = at + kAheadBytes < row_bytes ? kAheadBytes : kAheadBytes + (kTileSide - 1) * row_bytes;
#pragma GCC unroll 16
  for (int64_t r = 0; r < kTileSide; ++r) _mm_prefetch(rows + next + r * row_bytes, _MM_HINT_T0);
  if (tiles < kStripTiles) {
    for (int64_t r = 0; r < kTileSide; ++r)
      std::memcpy(ends + r * kStripBytes, rows + r * row_bytes, static_cast<size_t>(tiles * kTileRowBytes));
    rows = ends;
    row_bytes = kStripBytes;
  }
  for (int64_t r = 0; r < kTileSide / 2; ++r) {
    const uint8_t *low = rows + r * row_bytes, *high = low + kTileSide / 2 * row_bytes;
    join_rows(low, high, packed + r * kPairBytes);
    join_rows(low + 32, high + 32, packed + 4 * kTileBytes + r * kPairBytes);
  }
  for (int64_t tile = 0; tile < tiles; ++tile)
    copy_out(planes.out + tile_offset(p, n, at + tile * kTileRowBytes), packed + tile * kTileBytes,
             kTileBytes, planes.past_caches);
}

}  // namespace

const qcts_kernel qcts_kernel_pack_int4_plain_avx2 = qcts::exact_entry(
    QCTS_OP_PACK, "int4_plain", "avx2", "nibbles of two rows joined, eight tiles at a time; bound by memory",
    {qcts::supports_problem<qcts_kernel_pack_int4_plain_avx2>,
     qcts::run_checked<qcts_kernel_pack_int4_plain_avx2, shuffle_codes<pack_strip, kTileSide>>});
