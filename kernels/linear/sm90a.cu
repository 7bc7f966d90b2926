// SPDX-License-Identifier: BSD-3-Clause
// Layouts and limits: kernels/sm90a/fp8.h.
#include "kernels/sm90a/fp8.h"

using namespace qcts;

const qcts_kernel qcts_kernel_linear_fp8_row_dyn_sm90a =
    sm90a::fp8_dyn_row<qcts_kernel_linear_fp8_row_dyn_sm90a, sm80::fp8_row_weight>(
        "fp8_row:dyn_row,dyn_row_mslk");
const qcts_kernel qcts_kernel_linear_fp8_dyn_sm90a =
    sm90a::with_one_scale_of_x(sm90a::fp8_dyn_row<qcts_kernel_linear_fp8_dyn_sm90a, sm80::fp8_weight>(
        "fp8:dyn_tensor,static_tensor,static_tensor_out"));
