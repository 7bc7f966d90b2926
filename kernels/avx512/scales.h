// SPDX-License-Identifier: BSD-3-Clause
// For the AVX-512 variants of `linear` without zeros.
// In their blocks, 64 bfloat16 scales follow the codes of each group.
#pragma once

#include "kernels/avx512/linear.h"
#include "kernels/families/block_planes.h"

namespace qcts::avx512 {
namespace {

struct NarrowScales {
  static constexpr bool kHasZeros = false;
  static int64_t scale_bytes(const qcts_problem&) { return 2 * kColumns; }
  static void scales(const qcts_problem&, const uint8_t* at, int vector, __m512* scale, __m512*) {
    *scale = load16(QCTS_BF16, at + vector * 2 * kLanes);
  }
};

}  // namespace
}  // namespace qcts::avx512
