// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sm80/gemv.h"
#include "kernels/sm80/int4.h"

using namespace qcts;

namespace {

// Weights are rounded to float32 before they are multiplied; sums are fused in float32.
constexpr qcts_numerics kFloatWeights = {.struct_size = sizeof(qcts_numerics),
                                         .x_cast = QCTS_NONE,
                                         .scale_cast = QCTS_NONE,
                                         .weight_cast = QCTS_F32,
                                         .product_cast = QCTS_NONE,
                                         .accumulator = QCTS_F32,
                                         .partial_cast = QCTS_NONE,
                                         .output_cast = QCTS_NONE,
                                         .flags = 0,
                                         .reserved = 0};

}  // namespace

const qcts_kernel qcts_kernel_linear_int4_tinygemm_sm80 =
    linear_launched<qcts_kernel_linear_int4_tinygemm_sm80, sm80::gemv_linear<sm80::TinygemmWeight>,
                    sm80::supports_gemv<qcts_kernel_linear_int4_tinygemm_sm80>>(
        "int4_tinygemm", "sm80",
        "a warp a row of the weight, 16 bytes of codes a lane; bound by reading them", kFloatWeights);
