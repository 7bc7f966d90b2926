// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x by the weight's rules (kernels/quantize/scalar.cc); float8 has bounds if they are given
// (kernels/families/float8_scales.h).
#include "kernels/scalar/blocks.h"
#include "kernels/scalar/groups.h"
#include "kernels/scalar/int8.h"

using namespace qcts;

const qcts_kernel qcts_kernel_quantize_activation_fp8_row_scalar =
    activation_whole<qcts_kernel_quantize_activation_fp8_row_scalar, scalar::quantize_float8_problem>(
        "fp8_row:dyn_row,dyn_row_mslk", "scalar",
        "two passes per block: absolute maximum, then codes; bound by one division per element");

const qcts_kernel qcts_kernel_quantize_activation_fp8_scalar =
    activation_whole<qcts_kernel_quantize_activation_fp8_scalar, scalar::quantize_float8_problem>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "scalar",
        "two passes per block: absolute maximum, then codes; bound by one division per element");

// Like fp8_row, since only the weight is sparse.
const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_scalar =
    activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_scalar, scalar::quantize_float8_problem>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "scalar",
        "two passes per block: absolute maximum, then codes; bound by one division per element");

const qcts_kernel qcts_kernel_quantize_activation_int4_e4m3_scalar =
    activation_whole<qcts_kernel_quantize_activation_int4_e4m3_scalar, scalar::quantize_float8_problem>(
        "int4_e4m3:dyn_row_mslk", "scalar",
        "two passes per row: absolute maximum, then codes; bound by one division per element");

const qcts_kernel qcts_kernel_quantize_activation_float_weight_scalar =
    activation_whole<qcts_kernel_quantize_activation_float_weight_scalar, scalar::quantize_float8_problem>(
        "float_weight:dyn_row_fbgemm", "scalar",
        "two passes per row: absolute maximum, then codes; bound by one division per element");

// torchao 0.18 Int8Tensor.from_hp of rows of x (kernels/families/int8_x.h).
const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_scalar = activation_rows<
    qcts_kernel_quantize_activation_int8_row_dyn_scalar, scalar::quantize_int8_rows<FullRange>>(
    kInt8RowX, "scalar",
    "a row's range, unless the scale is given, then codes; bound by float rounding, one element at a time");

const qcts_kernel qcts_kernel_quantize_activation_int8_tensor_dyn_scalar = activation_rows<
    qcts_kernel_quantize_activation_int8_tensor_dyn_scalar, scalar::quantize_int8_rows<FullRange>>(
    kInt8TensorX, "scalar",
    "a row's range, unless the scale is given, then codes; bound by float rounding, one element at a time");

const qcts_kernel qcts_kernel_quantize_activation_int8_row_reduced_dyn_scalar = activation_rows<
    qcts_kernel_quantize_activation_int8_row_reduced_dyn_scalar, scalar::quantize_int8_rows<ReducedRange>>(
    kInt8RowReducedX, "scalar",
    "a row's range, unless the scale is given, then codes; bound by float rounding, one element at a time");

const qcts_kernel qcts_kernel_quantize_activation_int8_tensor_reduced_dyn_scalar =
    activation_rows<qcts_kernel_quantize_activation_int8_tensor_reduced_dyn_scalar,
                    scalar::quantize_int8_rows<ReducedRange>>(
        kInt8TensorReducedX, "scalar",
        "a row's range, unless the scale is given, then codes; bound by float rounding, one element at a "
        "time");

// 8da4w: torchao 0.18 _apply_int8_act_asym_per_token_quant_dequant; parameters follow
// kernels/families/affine_groups.h.
const qcts_kernel qcts_kernel_quantize_activation_intx_scalar =
    activation_rows<qcts_kernel_quantize_activation_intx_scalar, scalar::quantize_affine_groups<intx_recipe>>(
        "intx:dyn_token_asym", "scalar",
        "two passes per group: its range, then its codes; bound by the rounding, one element at a time");

// torchao 0.18 mx_tensor.py, MXTensor.to_mx with act_quant_kwargs.
const qcts_kernel qcts_kernel_quantize_activation_mx_scalar =
    activation_rows<qcts_kernel_quantize_activation_mx_scalar, scalar::quantize_mx_rows>(
        "mx:dyn_block32", "scalar", "two passes per block, one element at a time; bound by the rounding");

// torchao 0.18 nvfp4_tensor.py, nvfp4_linear.
const qcts_kernel qcts_kernel_quantize_activation_nvfp4_scalar =
    activation_whole<qcts_kernel_quantize_activation_nvfp4_scalar, scalar::quantize_nvfp4_problem>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "scalar",
        "two passes per block, one element at a time; bound by the rounding");
