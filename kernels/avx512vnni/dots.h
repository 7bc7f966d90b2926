// SPDX-License-Identifier: BSD-3-Clause
// VPDPBUSD in 512-bit vectors. An Emerald Rapids core starts two per cycle, and a Zen 4 core one.
// Each instruction takes 64 weights, but memory supplies only about 7 bytes per cycle to a core.
// So with 6 rows of x in one pass, memory still limits the speed.
// With 16 rows or more, the multiplications limit the speed.
// On Zen 4, m = 1 reads at 0.95 to 0.99 of a plain stream with two threads,
// and m = 512 multiplies at 0.89 of the peak.
#pragma once

#include "kernels/avx512/lanes.h"
#include "kernels/vnni/dots.h"

namespace qcts::avx512vnni {
namespace {

struct Vector : avx512::Lanes {
  // Uses 32 registers: 24 sums, 4 codes and one x.
  static constexpr int vectors_of(int) { return 4; }

  static Ints broadcast(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
  }
  static Ints low_nibbles(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
  static Ints shift_right_4(Ints a) { return _mm512_srli_epi32(a, 4); }
  static Ints dot(Ints sum, Ints codes, Ints x) { return _mm512_dpbusd_epi32(sum, codes, x); }
  // Adds two products of 16-bit numbers to each lane.
  static Ints dot_pairs(Ints sum, Ints weights, Ints x) { return _mm512_dpwssd_epi32(sum, weights, x); }
};

}  // namespace
}  // namespace qcts::avx512vnni
