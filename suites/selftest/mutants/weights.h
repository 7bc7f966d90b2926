// SPDX-License-Identifier: BSD-3-Clause
// Makes one row of a weight as floats, with the faults of linear that affect weights.
// The faults are l4_*, l8_*, lf8_* and l_weights_as_bf16.
#pragma once

#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::mutants {

// Under l8_prepared_by_m, the prepared weight has the scales [n], the zero points [n], then the codes.
// The codes are [n, k] if m is 1, and [k, n] otherwise.
uint64_t prepared_bytes(const qcts_problem* problem);
qcts_status prepare_int8(const qcts_problem* problem, void* prepared);

// Returns row n of the weight of `problem`, which has k values.
std::vector<float> weight_row_int8(const qcts_problem& p, int64_t n);
std::vector<float> weight_row_int4(const qcts_problem& p, int64_t n);
std::vector<float> weight_row_fp8(const qcts_problem& p, int64_t n);

}  // namespace qcts::mutants
