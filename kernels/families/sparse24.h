// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights that store two of every four weights along k (reference/schemes/fp8_sparse24.cc).
// The variants of quantize use these functions once per problem.
#pragma once

#include "kernels/families/float8_scales.h"

namespace qcts {

// A chunk of four codes is stored as two values and a nibble with their places.
// The place of the first value is in the low two bits.
// The index of the table says which of the four codes are not zero: bit i stands for code i.
// If only one code is not zero, a zero takes place 3, or place 0 if the value is at place 3.
constexpr uint8_t kTooMany = 0x80;
constexpr uint8_t kPlaces24[16] = {0x0, 0xC, 0xD, 0x4,      0xE, 0x8,      0x9,      kTooMany,
                                   0xC, 0xC, 0xD, kTooMany, 0xE, kTooMany, kTooMany, kTooMany};

struct Sparse24Task {
  Float8Task dense;  // everything except the codes
  uint8_t *values, *metadata;
};

// Quantizes rows [first, last) and their scales. Returns false if a chunk has more than two nonzero codes.
using Sparse24Rows = bool (*)(const Sparse24Task& task, int64_t first, int64_t last);
// Quantizes the whole problem with as many threads as it allows.
// Returns QCTS_FAILED if the weight is not 2:4 sparse.
// A row of zeros is not 2:4 sparse, because its codes are NaN.
qcts_status quantize_sparse24(const qcts_problem& problem, Sparse24Rows rows);

}  // namespace qcts
