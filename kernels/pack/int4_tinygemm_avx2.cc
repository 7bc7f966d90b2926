// SPDX-License-Identifier: BSD-3-Clause
// Packs codes of "plain" (even k in the high nibble) into the four layouts of tinygemm.
// int4_tinygemm_scalar.cc describes them; kernels/avx2/tile_packed.h handles tile_packed_4d.
//
// For ATen's three, 64 bytes of each column at a time go through a buffer, since columns are a multiple of
// 4096 bytes apart and would evict each other from L1. On the way there, nibbles of columns that share a byte
// are joined. Then 16 x 32 bytes are transposed, with half a vector for each of two k, so neither step moves
// data across lanes. Reading 32 or 64 columns at once is too much for the hardware prefetcher: lines are
// prefetched 128 ahead, some between every two transpositions. Prefetched in one burst a strip ahead, they
// delay the loads that follow (EPYC Zen 4, 4096 x 4096, one thread: 1.05 to 1.13 times as long). For 32
// columns, 64 lines ahead is too late (Zen 5: 1.45 times as long), and 256 lines ahead no better.
#include "kernels/avx2/tile_packed.h"
#include "kernels/avx2/transpose.h"

namespace {

using namespace qcts::avx2;

constexpr int64_t kAheadLines = 128;

// Packs a block that is not full: neighbours are joined.
void pack_short_block(const uint8_t* plain, int64_t k_bytes, int64_t columns, uint8_t* out) {
  for (int64_t k = 0; k < 2 * k_bytes; ++k)
    for (int64_t c = 0; c < columns; c += 2) {
      const auto code = [&](int64_t column) {
        const uint8_t pair = plain[column * k_bytes + k / 2];
        return k % 2 == 0 ? pair >> 4 : pair & 15;
      };
      out[k * columns / 2 + c / 2] = static_cast<uint8_t>(code(c + 1) << 4 | code(c));
    }
}

// Joins 64 bytes of a column with those of the column that shares its bytes: their even k become bytes of the
// packed block, and so do their odd k.
void join_nibbles(const uint8_t* low, const uint8_t* high, uint8_t* even, uint8_t* odd) {
  const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 2
  for (int i = 0; i < kStripBytes; i += 32) {
    const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(low + i)),
                  b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(high + i));
    _mm256_store_si256(
        reinterpret_cast<__m256i*>(even + i),
        _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(a, 4), nibble), _mm256_andnot_si256(nibble, b)));
    _mm256_store_si256(
        reinterpret_cast<__m256i*>(odd + i),
        _mm256_or_si256(_mm256_and_si256(a, nibble), _mm256_andnot_si256(nibble, _mm256_slli_epi16(b, 4))));
  }
}

// Transposes 16 x 32 bytes, to[j * ld_to + i] = strip[i * kStripBytes + j]; j and j + 16 have half a vector
// each.
void transpose_16_32(const uint8_t* strip, uint8_t* to, int64_t ld_to) {
  __m256i a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    a[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(strip + i * kStripBytes));
#pragma GCC unroll 4
  for (int round = 0; round < 4; ++round) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      b[2 * i] = _mm256_unpacklo_epi8(a[i], a[i + 8]);
      b[2 * i + 1] = _mm256_unpackhi_epi8(a[i], a[i + 8]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int j = 0; j < 16; ++j)
    _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + (j + 16) * ld_to),
                         reinterpret_cast<__m128i*>(to + j * ld_to), a[j]);
}

[[gnu::always_inline]] inline void fetch_columns(const uint8_t* at, int64_t k_bytes) {
#pragma GCC unroll 16
  for (int64_t c = 0; c < 16; ++c) _mm_prefetch(at + c * k_bytes, _MM_HINT_T1);
}

// For each byte of a column writes `columns` bytes of the packed block: first the even k of all columns, then
// the odd one.
void pack_full_block(const uint8_t* plain, int64_t k_bytes, const Pairing& pairing, bool past_caches,
                     uint8_t* out) {
  alignas(64) uint8_t even[32 * kStripBytes], odd[32 * kStripBytes], packed[kStripBytes * 64];
  const int64_t columns = pairing.columns, half = columns / 2;
  for (int64_t j0 = 0; j0 < k_bytes; j0 += kStripBytes) {
    const int64_t some = k_bytes - j0 < kStripBytes ? k_bytes - j0 : kStripBytes;
    // In this block or the next one.
    const int64_t ahead = j0 + kAheadLines / columns * kStripBytes,
                  next = ahead < k_bytes ? ahead : ahead + (columns - 1) * k_bytes;
    for (int64_t c = 0; c < half; ++c) {
      const uint8_t *low = plain + c * pairing.step * k_bytes, *high = low + pairing.apart * k_bytes;
      if (some == kStripBytes) {
        join_nibbles(low + j0, high + j0, even + c * kStripBytes, odd + c * kStripBytes);
      } else {
        uint8_t ends[2][kStripBytes] = {};
        std::memcpy(ends[0], low + j0, static_cast<size_t>(some));
        std::memcpy(ends[1], high + j0, static_cast<size_t>(some));
        join_nibbles(ends[0], ends[1], even + c * kStripBytes, odd + c * kStripBytes);
      }
    }
    uint8_t* to = out + j0 * columns;
    uint8_t* tiles = past_caches || some % 32 != 0 ? packed : to;
    for (int64_t j = 0; j < some; j += 32)
      for (int64_t c = 0; c < half; c += 16) {
        fetch_columns(plain + (j / 32 * half + c) * k_bytes + next, k_bytes);
        transpose_16_32(even + c * kStripBytes + j, tiles + j * columns + c, columns);
        transpose_16_32(odd + c * kStripBytes + j, tiles + j * columns + half + c, columns);
      }
    if (tiles == packed) write_out(to, packed, some * columns, past_caches);
  }
}

void pack(const qcts_problem* problem) {
  if (qcts::is_tile_packed(problem->layout)) return pack_tiles(problem);
  convert_pairings<pack_full_block, pack_short_block>(problem);
}

}  // namespace

const qcts_kernel qcts_kernel_pack_int4_tinygemm_avx2 = qcts::exact_entry(
    QCTS_OP_PACK, "int4_tinygemm", "avx2",
    "nibbles joined, then 16 x 32 bytes transposed at a time, or 4 x 4 of a row; bound by memory",
    {qcts::supports_problem<qcts_kernel_pack_int4_tinygemm_avx2>,
     qcts::run_checked<qcts_kernel_pack_int4_tinygemm_avx2, pack>});
