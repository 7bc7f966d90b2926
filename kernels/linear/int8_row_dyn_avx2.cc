// SPDX-License-Identifier: BSD-3-Clause
// W8A8 with a scale for each row of the weight.
#include "kernels/avx2/int8_dyn.h"

const qcts_kernel qcts_kernel_linear_int8_row_dyn_avx2 =
    qcts::avx2::int8_dyn_of<qcts_kernel_linear_int8_row_dyn_avx2, qcts::FullRange, false>(qcts::kInt8RowX);
