// VPDPBUSD of 256 bits in its VEX form, for processors with AVX-VNNI and without AVX-512; every function has
// internal linkage. Never timed: the shapes follow from 16 registers.
#pragma once

#include "kernels/avx2_dot_lanes.h"
#include "kernels/vnni_dots.h"

namespace qcts::avxvnni {
namespace {

struct Vector : avx2::DotLanes {
  // 8 to 12 sums, their codes, one x.
  static constexpr int vectors_of(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }

  static Ints dot(Ints sum, Ints codes, Ints x) { return _mm256_dpbusd_avx_epi32(sum, codes, x); }
  // Two products of 16 bits.
  static Ints dot_pairs(Ints sum, Ints weights, Ints x) { return _mm256_dpwssd_avx_epi32(sum, weights, x); }
};

}  // namespace
}  // namespace qcts::avxvnni
