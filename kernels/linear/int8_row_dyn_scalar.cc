// SPDX-License-Identifier: BSD-3-Clause
// W8A8: kernels/scalar/int8_linear.h with one scale for each row of the weight.
#include "kernels/scalar/int8_linear.h"

namespace {

using namespace qcts::scalar;

struct Int8RowDyn {
  static int64_t group(const qcts_problem& p) { return p.k; }

  static qcts::RowScale quantize_row(const qcts_problem& p, const char* row, int8_t* codes) {
    return quantize_int8_row(p, row, codes);
  }
};

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_dyn_scalar =
    int8_linear_of<qcts_kernel_linear_int8_row_dyn_scalar, Int8RowDyn>(qcts::kInt8RowX);
