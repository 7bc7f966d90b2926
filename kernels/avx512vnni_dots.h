// VPDPBUSD of 512 bits; every function has internal linkage. An Emerald Rapids core starts two of them a
// cycle (measured: 660 billion byte operations a second), good for 128 bytes of weights, where memory brings
// some 7 bytes and its second cache 50. So 6 rows of x in one pass leave memory the bound, and 16 of them,
// three passes of which two read L1, ask for 8 cycles a line of 64 byte codes, where memory takes 10. That is
// an account, not a measurement: these kernels were never timed.
#pragma once

#include "kernels/avx512_lanes.h"
#include "kernels/vnni_dots.h"

namespace qcts::avx512vnni {
namespace {

struct Vector : avx512::Lanes {
  // Of 32 registers: 24 sums, 4 codes, one x.
  static constexpr int vectors_of(int) { return 4; }

  static Ints broadcast(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, 4);
    return _mm512_set1_epi32(four);
  }
  static Ints low_nibbles(Ints a) { return _mm512_and_si512(a, _mm512_set1_epi8(15)); }
  static Ints shift_right_4(Ints a) { return _mm512_srli_epi32(a, 4); }
  static Ints dot(Ints sum, Ints codes, Ints x) { return _mm512_dpbusd_epi32(sum, codes, x); }
};

}  // namespace
}  // namespace qcts::avx512vnni
