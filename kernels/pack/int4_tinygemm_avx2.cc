// Codes of "plain" (even k in the high nibble) into ATen's packings of AVX-512 and AVX2:
// int4_tinygemm_scalar.cc has the map. Bytes of 16 columns and of the 16 that are half a block away are
// transposed together, a half each of a vector, then the two nibbles of the halves change places: half an
// operation a byte. 64 bytes of each column at a time go through a buffer, since columns lie a multiple of
// 4096 bytes apart and would throw each other out of L1. What bounds it is reading 32 or 64 columns at once,
// too many for the processor to foresee: without the prefetch it takes three times as long.
#include "kernels/avx2_transpose.h"

namespace {

using namespace qcts::avx2;

// A block that is not full: neighbours are joined.
void pack_short_block(const uint8_t* plain, int64_t k_bytes, int64_t columns, bool, uint8_t* out) {
  for (int64_t k = 0; k < 2 * k_bytes; ++k)
    for (int64_t c = 0; c < columns; c += 2) {
      const auto code = [&](int64_t column) {
        const uint8_t pair = plain[column * k_bytes + k / 2];
        return k % 2 == 0 ? pair >> 4 : pair & 15;
      };
      out[k * columns / 2 + c / 2] = static_cast<uint8_t>(code(c + 1) << 4 | code(c));
    }
}

// Bytes j .. j + 16 of columns [0, 16) and [apart, apart + 16) of a strip: for each of them `columns` bytes
// of the packed block, of which these are the first 16 of its even k, and of its odd one half a block later.
void pack_tile(const uint8_t* strip, int64_t apart, int64_t columns, uint8_t* out) {
  __m256i a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    a[i] = _mm256_loadu2_m128i(reinterpret_cast<const __m128i*>(strip + (i + apart) * kStripBytes),
                               reinterpret_cast<const __m128i*>(strip + i * kStripBytes));
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
  const __m256i nibble = _mm256_set1_epi8(15);
  const auto store2 = [&](uint8_t* to, __m256i two) {
    _mm256_storeu2_m128i(reinterpret_cast<__m128i*>(to + columns), reinterpret_cast<__m128i*>(to), two);
  };
#pragma GCC unroll 8
  for (int j = 0; j < 16; j += 2) {
    const __m256i low = _mm256_permute2x128_si256(a[j], a[j + 1], 0x20),
                  high = _mm256_permute2x128_si256(a[j], a[j + 1], 0x31);
    store2(out + j * columns, _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low, 4), nibble),
                                              _mm256_andnot_si256(nibble, high)));
    store2(out + j * columns + columns / 2,
           _mm256_or_si256(_mm256_and_si256(low, nibble),
                           _mm256_andnot_si256(nibble, _mm256_slli_epi16(high, 4))));
  }
}

void pack_full_block(const uint8_t* plain, int64_t k_bytes, int64_t columns, bool past_caches, uint8_t* out) {
  alignas(64) uint8_t strip[64 * kStripBytes], packed[kStripBytes * 64];
  for (int64_t j0 = 0; j0 < k_bytes; j0 += kStripBytes) {
    const int64_t some = k_bytes - j0 < kStripBytes ? k_bytes - j0 : kStripBytes;
    // The next strip of the column, or the first of the next block's.
    const int64_t next = j0 + kStripBytes < k_bytes ? j0 + kStripBytes : columns * k_bytes;
    for (int64_t c = 0; c < columns; ++c) {
      const uint8_t* from = plain + c * k_bytes + j0;
      if (some == kStripBytes)  // a length that is known, for the compiler to copy itself
        std::memcpy(strip + c * kStripBytes, from, kStripBytes);
      else
        std::memcpy(strip + c * kStripBytes, from, static_cast<size_t>(some));
      _mm_prefetch(plain + c * k_bytes + next, _MM_HINT_T1);
    }
    uint8_t* to = out + j0 * columns;
    uint8_t* tiles = past_caches || some % 16 != 0 ? packed : to;
    for (int64_t j = 0; j < some; j += 16)
      for (int64_t c = 0; c < columns / 2; c += 16)
        pack_tile(strip + c * kStripBytes + j, columns / 2, columns, tiles + j * columns + c);
    if (tiles == packed) write_out(to, packed, some * columns, past_caches);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_pack_int4_tinygemm_avx2 =
    exact_blocks<qcts_kernel_pack_int4_tinygemm_avx2, pack_full_block, pack_short_block>(
        QCTS_OP_PACK, "16 x 32 bytes transposed at a time, then nibbles joined; bound by memory");
