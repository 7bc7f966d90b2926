// Codes of "plain" (even k in the high nibble) into ATen's packings of AVX-512 and AVX2:
// int4_tinygemm_scalar.cc has the map. A block's bytes are transposed 16 x 16, then each byte position of all
// columns is split into its two k, and columns half a block apart are joined. Bound by memory: a byte costs a
// quarter of an interleave and a tenth of the rest. 64 bytes of each column at a time go through a buffer,
// since columns lie a multiple of 4096 bytes apart and would throw each other out of L1.
#include "kernels/avx2_transpose.h"

namespace {

using namespace qcts::avx2;

// A block that is not full: neighbours are joined.
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

// rows[j][c]: byte j of column c. Of each j the even k, then the odd one, half a block of bytes each.
void join_halves(const uint8_t* row, int64_t half, uint8_t* out) {
  const __m128i nibble = _mm_set1_epi8(15), upper = _mm_set1_epi8(static_cast<char>(0xF0));
  for (int64_t c = 0; c < half; c += 16) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + c));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + half + c));
    const __m128i even =
        _mm_or_si128(_mm_and_si128(_mm_srli_epi16(low, 4), nibble), _mm_and_si128(high, upper));
    const __m128i odd =
        _mm_or_si128(_mm_and_si128(low, nibble), _mm_and_si128(_mm_slli_epi16(high, 4), upper));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + c), even);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + half + c), odd);
  }
}

void pack_full_block(const uint8_t* plain, int64_t k_bytes, int64_t columns, uint8_t* out) {
  alignas(64) uint8_t strip[64 * kStripBytes], rows[16 * 64];
  for (int64_t j0 = 0; j0 < k_bytes; j0 += kStripBytes) {
    const int64_t some = k_bytes - j0 < kStripBytes ? k_bytes - j0 : kStripBytes;
    for (int64_t c = 0; c < columns; ++c)
      std::memcpy(strip + c * kStripBytes, plain + c * k_bytes + j0, static_cast<size_t>(some));
    for (int64_t j = 0; j < some; j += 16) {
      for (int64_t c = 0; c < columns; c += 16)
        transpose_16(strip + c * kStripBytes + j, kStripBytes, rows + c, 64);
      for (int64_t i = 0; i < 16 && j + i < some; ++i)
        join_halves(rows + i * 64, columns / 2, out + (j0 + j + i) * columns);
    }
  }
}

}  // namespace

const qcts_kernel qcts_kernel_pack_int4_tinygemm_avx2 =
    exact_blocks<qcts_kernel_pack_int4_tinygemm_avx2, pack_full_block, pack_short_block>(
        QCTS_OP_PACK, "16 x 16 bytes transposed at a time, then nibbles joined; bound by memory");
