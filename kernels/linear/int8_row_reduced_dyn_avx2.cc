// SPDX-License-Identifier: BSD-3-Clause
// W8A8 with codes -64 .. 63 and a scale for each row of the weight.
#include "kernels/avx2/int8_dyn.h"

const qcts_kernel qcts_kernel_linear_int8_row_reduced_dyn_avx2 =
    qcts::avx2::int8_dyn_of<qcts_kernel_linear_int8_row_reduced_dyn_avx2, qcts::ReducedRange, false>(
        qcts::kInt8RowReducedX);
