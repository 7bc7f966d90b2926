// SPDX-License-Identifier: BSD-3-Clause
// Unpacks the four layouts of tinygemm to "plain": the reverse of pack/int4_tinygemm_avx2.cc, with the same
// blocks and the same limit.
#include "kernels/avx2/tile_packed.h"
#include "kernels/avx2/transpose.h"

namespace {

using namespace qcts::avx2;

void unpack_short_block(const uint8_t* in, int64_t k_bytes, int64_t columns, uint8_t* plain) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t k = 0; k < 2 * k_bytes; k += 2) {
      const auto code = [&](int64_t at) { return in[at * columns / 2 + c / 2] >> (c % 2 * 4) & 15; };
      plain[c * k_bytes + k / 2] = static_cast<uint8_t>(code(k) << 4 | code(k + 1));
    }
}

// Makes the bytes of one pair of k, for all columns, from the half blocks of the even k and the odd one.
void split_halves(const uint8_t* in, int64_t half, uint8_t* row) {
  const __m128i nibble = _mm_set1_epi8(15), upper = _mm_set1_epi8(static_cast<char>(0xF0));
  for (int64_t c = 0; c < half; c += 16) {
    const __m128i even = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + c));
    const __m128i odd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + half + c));
    const __m128i low =
        _mm_or_si128(_mm_and_si128(_mm_slli_epi16(even, 4), upper), _mm_and_si128(odd, nibble));
    const __m128i high =
        _mm_or_si128(_mm_and_si128(even, upper), _mm_and_si128(_mm_srli_epi16(odd, 4), nibble));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + c), low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(row + half + c), high);
  }
}

void unpack_full_block(const uint8_t* in, int64_t k_bytes, const Pairing& pairing, bool past_caches,
                       uint8_t* plain) {
  alignas(64) uint8_t strip[64 * kStripBytes], rows[16 * 64];
  const int64_t columns = pairing.columns, half = columns / 2;
  for (int64_t j0 = 0; j0 < k_bytes; j0 += kStripBytes) {
    const int64_t some = k_bytes - j0 < kStripBytes ? k_bytes - j0 : kStripBytes;
    for (int64_t j = 0; j < some; j += 16) {
      for (int64_t i = 0; i < 16 && j + i < some; ++i)
        split_halves(in + (j0 + j + i) * columns, half, rows + i * 64);
      for (int64_t c = 0; c < columns; c += 16)
        transpose_16(rows + c, 64, strip + c * kStripBytes + j, kStripBytes);
    }
    for (int64_t c = 0; c < half; ++c)
      for (int64_t i = 0; i < 2; ++i)
        write_out(plain + (c * pairing.step + i * pairing.apart) * k_bytes + j0,
                  strip + (c + i * half) * kStripBytes, some, past_caches);
  }
}

void unpack(const qcts_problem* problem) {
  if (qcts::is_tile_packed(problem->layout)) return unpack_tiles(problem);
  convert_pairings<unpack_full_block, unpack_short_block>(problem);
}

}  // namespace

const qcts_kernel qcts_kernel_unpack_int4_tinygemm_avx2 = qcts::exact_entry(
    QCTS_OP_UNPACK, "int4_tinygemm", "avx2",
    "nibbles split, then 16 x 16 bytes transposed at a time, or 4 x 4 of a row; bound by memory",
    {qcts::supports_problem<qcts_kernel_unpack_int4_tinygemm_avx2>,
     qcts::run_checked<qcts_kernel_unpack_int4_tinygemm_avx2, unpack>});
