// SPDX-License-Identifier: BSD-3-Clause
// W8A8 with one scale for the weight.
#include "kernels/avx2/int8_dyn.h"

const qcts_kernel qcts_kernel_linear_int8_tensor_dyn_avx2 =
    qcts::avx2::int8_dyn_of<qcts_kernel_linear_int8_tensor_dyn_avx2, qcts::FullRange, true>(
        qcts::kInt8TensorX);
