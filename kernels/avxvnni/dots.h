// SPDX-License-Identifier: BSD-3-Clause
// VPDPBUSD in 256-bit vectors, in its VEX form, for processors that have AVX-VNNI but not AVX-512.
// The shapes follow from 16 registers.
// One thread of an EPYC Zen 5 without its AVX-512, at m = 1 and 4096 x 4096 cold,
// reads int8 with dynamic x at 1.01 of a plain stream. It reads 4 bits with dynamic x at 1.00.
#pragma once

#include "kernels/avx2/dots/dot_lanes.h"
#include "kernels/vnni/dots.h"

namespace qcts::avxvnni {
namespace {

struct Vector : avx2::DotLanes {
  // Leaves room for 8 to 12 sums, the codes of these sums and one x.
  static constexpr int vectors_of(int rows) { return rows == 1 ? 8 : rows == 2 ? 4 : 2; }

  static Ints dot(Ints sum, Ints codes, Ints x) { return _mm256_dpbusd_avx_epi32(sum, codes, x); }
  // Adds two products of 16-bit numbers to each lane.
  static Ints dot_pairs(Ints sum, Ints weights, Ints x) { return _mm256_dpwssd_avx_epi32(sum, weights, x); }
};

}  // namespace
}  // namespace qcts::avxvnni
