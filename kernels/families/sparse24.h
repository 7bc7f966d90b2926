// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights of which two of every four along k are stored (reference/schemes/fp8_sparse24.cc): what the
// variants of quantize do once a problem. Ordinary functions, compiled once for the baseline processor.
#pragma once

#include "kernels/families/float8_scales.h"

namespace qcts {

// A chunk of four codes is two values and a nibble of their places, the first in its low two bits. By which
// of the four are not zero, bit i the i-th: where fewer than two are, a zero takes place 3, or 0 before it.
constexpr uint8_t kTooMany = 0x80;
constexpr uint8_t kPlaces24[16] = {0x0, 0xC, 0xD, 0x4,      0xE, 0x8,      0x9,      kTooMany,
                                   0xC, 0xC, 0xD, kTooMany, 0xE, kTooMany, kTooMany, kTooMany};

struct Sparse24Task {
  Float8Task dense;  // but for codes
  uint8_t *values, *metadata;
};

// Rows [first, last), their scales too; false where a chunk has more than two codes that are not zero.
using Sparse24Rows = bool (*)(const Sparse24Task& task, int64_t first, int64_t last);
// The whole problem by as many threads as it allows. QCTS_FAILED where the weight is not 2:4 sparse: a row of
// zeros is not, since its codes are NaN.
qcts_status quantize_sparse24(const qcts_problem& problem, Sparse24Rows rows);

}  // namespace qcts
