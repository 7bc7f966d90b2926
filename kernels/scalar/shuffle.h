// SPDX-License-Identifier: BSD-3-Clause
// MSLK's preshuffled order of int4 codes, for the scalar variants.
// The order is CUTLASS's layout of a tensor core operand.
// (See preshuffle_i4 for bfloat16 x in csrc/gemm/cutlass/mixed_dtype_utils.cu.)
// Tiles have 16 rows and 16 columns and are consecutive along n.
// Each of 32 lanes, lane k % 8 / 2 + 4 * (n % 8), has eight codes.
// In the index of a code, bit 0 is n % 16 / 8, bit 1 is k % 16 / 8, and bit 2 is k % 2.
// Two codes share a byte, and the even code is in the low nibble. Scale and zero_point stay as they are.
#pragma once

#include "kernels/families/copy_planes.h"
#include "kernels/families/entry.h"

namespace qcts::scalar {
namespace {

[[maybe_unused]] int64_t shuffled(const qcts_problem& p, int64_t n, int64_t k) {
  const int64_t tile = k / 16 * (p.n / 16) + n / 16, lane = k % 8 / 2 + 4 * (n % 8);
  return tile * 256 + lane * 8 + k % 2 * 4 + k % 16 / 8 * 2 + n % 16 / 8;
}
[[maybe_unused]] int64_t row_major(const qcts_problem& p, int64_t n, int64_t k) { return n * p.k + k; }

[[maybe_unused]] uint8_t get_nibble(const uint8_t* pairs, int64_t element) {
  return element % 2 == 0 ? pairs[element / 2] & 15 : pairs[element / 2] >> 4;
}
[[maybe_unused]] void put_nibble(uint8_t* pairs, int64_t element, uint8_t code) {
  uint8_t& pair = pairs[element / 2];
  pair = static_cast<uint8_t>(element % 2 == 0 ? (pair & 0xF0) | code : (pair & 15) | code << 4);
}

// Moves codes from one order to another. A function of type Order returns the index of the code of (n, k).
using Order = int64_t (*)(const qcts_problem& problem, int64_t n, int64_t k);
template <Order kFrom, Order kTo>
void move_nibbles(const qcts_problem* problem) {
  const qcts_problem& p = *problem;
  copy_planes_but(p, "qdata");
  const auto* from = static_cast<const uint8_t*>(in_plane(p, "qdata"));
  auto* to = static_cast<uint8_t*>(out_plane(p, "qdata"));
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k) put_nibble(to, kTo(p, n, k), get_nibble(from, kFrom(p, n, k)));
}

}  // namespace
}  // namespace qcts::scalar
