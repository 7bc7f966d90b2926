// SPDX-License-Identifier: BSD-3-Clause
// One row of a weight as floats, with the faults of linear that touch weights: l4_*, l8_*, lf8_*, and
// l_weights_as_bf16.
#pragma once

#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::mutants {

// Under l8_prepared_by_m: scales [n], zero points [n], then codes, [n, k] where m is 1 and [k, n] otherwise.
uint64_t prepared_bytes(const qcts_problem* problem);
qcts_status prepare_int8(const qcts_problem* problem, void* prepared);

// Row n of the weight of `problem`, k values.
std::vector<float> weight_row_int8(const qcts_problem& p, int64_t n);
std::vector<float> weight_row_int4(const qcts_problem& p, int64_t n);
std::vector<float> weight_row_fp8(const qcts_problem& p, int64_t n);

}  // namespace qcts::mutants
