// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/int8_x.h"
#include "kernels/sm80/quantize_ops.h"

using namespace qcts;

namespace {

constexpr const char* kRows = "a block per row, twice, 16 bytes per lane on both sides; bound by reading x";
constexpr const char* kBlocks = "a few lanes per block, 16 bytes per lane on both sides; bound by reading x";

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_sm80 =
    activation_launched<qcts_kernel_quantize_activation_int8_row_dyn_sm80, sm80::quantize_int8_activation>(
        kInt8RowX, "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_int8_tensor_dyn_sm80 =
    activation_launched<qcts_kernel_quantize_activation_int8_tensor_dyn_sm80, sm80::quantize_int8_activation>(
        kInt8TensorX, "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_int8_row_reduced_dyn_sm80 =
    activation_launched<qcts_kernel_quantize_activation_int8_row_reduced_dyn_sm80,
                        sm80::quantize_int8_activation>(kInt8RowReducedX, "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_int8_tensor_reduced_dyn_sm80 =
    activation_launched<qcts_kernel_quantize_activation_int8_tensor_reduced_dyn_sm80,
                        sm80::quantize_int8_activation>(kInt8TensorReducedX, "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_fp8_row_sm80 =
    activation_launched<qcts_kernel_quantize_activation_fp8_row_sm80, sm80::quantize_float8>(
        "fp8_row:dyn_row,dyn_row_mslk", "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_fp8_sm80 =
    activation_launched<qcts_kernel_quantize_activation_fp8_sm80, sm80::quantize_float8>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_sm80 =
    activation_launched<qcts_kernel_quantize_activation_fp8_sparse24_sm80, sm80::quantize_float8>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_float_weight_sm80 =
    activation_launched<qcts_kernel_quantize_activation_float_weight_sm80, sm80::quantize_float8>(
        "float_weight:dyn_row_fbgemm", "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_intx_sm80 =
    activation_launched<qcts_kernel_quantize_activation_intx_sm80, sm80::quantize_intx>("intx:dyn_token_asym",
                                                                                        "sm80", kRows);
const qcts_kernel qcts_kernel_quantize_activation_mx_sm80 =
    activation_launched<qcts_kernel_quantize_activation_mx_sm80, sm80::quantize_mx>("mx:dyn_block32", "sm80",
                                                                                    kBlocks);
const qcts_kernel qcts_kernel_quantize_activation_nvfp4_sm80 =
    activation_launched<qcts_kernel_quantize_activation_nvfp4_sm80, sm80::quantize_nvfp4>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "sm80", kBlocks);
