// SPDX-License-Identifier: BSD-3-Clause
// Decodes 4-bit codes by a table of sixteen floats, for the AVX-512 variants of `linear`.
// A block has 64 words of 32 bits (256 bytes) for every 8 values of k, one word for each column,
// with the code of element i along k at bit 4 * i. A permutation reads only the four low bits of a lane.
// So a shift and a permutation do the masking, the decoding and the conversion.
// With the fused multiply-add, sixteen weights take three instructions for two ports,
// and half a byte per weight. These limit the speed for m <= 4.
#pragma once

#include "kernels/avx512/linear.h"
#include "kernels/families/block_planes.h"

namespace qcts::avx512 {
namespace {

constexpr int kWordStep = 8, kWordBytesPerK = kColumns / 2;
static_assert(kColumns == kPlaneColumns);

// The values of e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
alignas(64) constexpr float kE2m1Floats[16] = {0,     0.5f,  1,     1.5f,  2,     3,     4,     6,
                                               -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// `table` has 64 bytes.
[[gnu::always_inline]] inline __m512 look_up_words(const void* table, const uint8_t* at, int vector, int i) {
  const __m512i words = _mm512_loadu_si512(at + vector * 4 * kLanes);
  return _mm512_permutexvar_ps(_mm512_srli_epi32(words, static_cast<unsigned>(4 * i)),
                               _mm512_loadu_ps(table));
}
// Writes eight codes of one column, starting at k.
[[maybe_unused]] void put_nibbles(uint8_t* group, int64_t column, int64_t k, uint32_t word) {
  std::memcpy(group + k * kWordBytesPerK + 4 * column, &word, 4);
}

}  // namespace
}  // namespace qcts::avx512
