// One row of a weight as floats, with the faults of linear that touch weights: l4_*, l8_*, lf8_*, and
// l_weights_as_bf16.
#pragma once

#include <vector>

#include "kernels/abi/qcts_kernel.h"

namespace qcts::mutants {

// Row n of the weight of `problem`, k values.
std::vector<float> weight_row_int8(const qcts_problem& p, int64_t n);
std::vector<float> weight_row_int4(const qcts_problem& p, int64_t n);
std::vector<float> weight_row_fp8(const qcts_problem& p, int64_t n);

}  // namespace qcts::mutants
