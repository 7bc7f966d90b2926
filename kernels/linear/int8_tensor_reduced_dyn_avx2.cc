// SPDX-License-Identifier: BSD-3-Clause
// W8A8 with codes -64 .. 63 and one scale for the weight.
#include "kernels/avx2/int8_dyn.h"

const qcts_kernel qcts_kernel_linear_int8_tensor_reduced_dyn_avx2 =
    qcts::avx2::int8_dyn_of<qcts_kernel_linear_int8_tensor_reduced_dyn_avx2, qcts::ReducedRange, true>(
        qcts::kInt8TensorReducedX);
