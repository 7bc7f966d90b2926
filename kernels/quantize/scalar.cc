// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scalar/blocks.h"
#include "kernels/scalar/groups.h"
#include "kernels/scalar/nf4.h"
#include "kernels/scalar/sparse24.h"

using namespace qcts;

// torchao 0.18 Float8Tensor.from_hp, one scale per row, on the torch path (quant_primitives.py:
// _choose_scale_float8, _quantize_affine_float8). The scale has no minimum: a block of zeros divides 0 by 0
// and stores NaN codes, as the original does.
const qcts_kernel qcts_kernel_quantize_fp8_row_scalar =
    exact_entry(QCTS_OP_QUANTIZE, "fp8_row", "scalar",
                "two passes per block: absolute maximum, then codes; bound by one division per element",
                {supports_problem<qcts_kernel_quantize_fp8_row_scalar>,
                 run_checked<qcts_kernel_quantize_fp8_row_scalar, scalar::quantize_float8_problem>});

// torchao 0.18 Float8Tensor.from_hp, one scale for all, for 128 x 128, for a row or for a group of a row, on
// the torch path (quant_primitives.py: _choose_scale_float8, _quantize_affine_float8). The scale has no
// minimum: a block of zeros divides 0 by 0 and stores NaN codes, as the original does.
const qcts_kernel qcts_kernel_quantize_fp8_scalar =
    exact_entry(QCTS_OP_QUANTIZE, "fp8", "scalar",
                "two passes per block: absolute maximum, then codes; bound by one division per element",
                {supports_problem<qcts_kernel_quantize_fp8_scalar>,
                 run_checked<qcts_kernel_quantize_fp8_scalar, scalar::quantize_float8_problem>});

// torchao 0.18 Int8Tensor.from_hp with PerTensor(), and with reduce_range=True, whose codes are -64 .. 63
// (int8_recipe in kernels/families/affine_groups.h).
const qcts_kernel qcts_kernel_quantize_int8_tensor_scalar =
    exact_entry(QCTS_OP_QUANTIZE, "int8_tensor", "scalar",
                "two passes over the weight: its largest magnitude, then codes, one element at a time",
                {supports_problem<qcts_kernel_quantize_int8_tensor_scalar>,
                 run_checked<qcts_kernel_quantize_int8_tensor_scalar, scalar::quantize_int8_tensor>});

const qcts_kernel qcts_kernel_quantize_int8_tensor_reduced_scalar =
    exact_entry(QCTS_OP_QUANTIZE, "int8_tensor_reduced", "scalar",
                "two passes over the weight: its largest magnitude, then codes, one element at a time",
                {supports_problem<qcts_kernel_quantize_int8_tensor_reduced_scalar>,
                 run_checked<qcts_kernel_quantize_int8_tensor_reduced_scalar, scalar::quantize_int8_tensor>});

const qcts_kernel qcts_kernel_quantize_int8_row_reduced_scalar =
    exact_rows<qcts_kernel_quantize_int8_row_reduced_scalar, scalar::quantize_affine_groups<int8_recipe>>(
        QCTS_OP_QUANTIZE, "int8_row_reduced", "scalar",
        "two passes per row: its range, then its codes; bound by the rounding, one element at a time");

// The same with PerGroup(g).
const qcts_kernel qcts_kernel_quantize_int8_group_scalar =
    exact_rows<qcts_kernel_quantize_int8_group_scalar, scalar::quantize_affine_groups<int8_recipe>>(
        QCTS_OP_QUANTIZE, "int8_group", "scalar",
        "two passes per group: its range, then its codes; bound by the rounding, one element at a time");

// torchao 0.18 IntxUnpackedToInt8Tensor.from_hp; parameters follow kernels/families/affine_groups.h.
const qcts_kernel qcts_kernel_quantize_intx_scalar =
    exact_rows<qcts_kernel_quantize_intx_scalar, scalar::quantize_affine_groups<intx_recipe>>(
        QCTS_OP_QUANTIZE, "intx", "scalar",
        "two passes per group: its range, then its codes; bound by the rounding, one element at a time");

// torchao 0.18 mx_tensor.py, to_mx and _to_mx_rceil (kernels/families/block_scales.h).
const qcts_kernel qcts_kernel_quantize_mx_scalar =
    exact_rows<qcts_kernel_quantize_mx_scalar, scalar::quantize_mx_rows>(
        QCTS_OP_QUANTIZE, "mx", "scalar",
        "two passes per block, one element at a time; bound by the rounding");

// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize. At two levels a pass over the tensor comes first
// (kernels/families/block_scales.h).
const qcts_kernel qcts_kernel_quantize_nvfp4_scalar = exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "scalar", "two passes per block, one element at a time; bound by the rounding",
    {supports_problem<qcts_kernel_quantize_nvfp4_scalar>,
     run_checked<qcts_kernel_quantize_nvfp4_scalar, scalar::quantize_nvfp4_problem>});

// torchao 0.18 nf4_tensor.py. convert_to_norm_float_weight gives x / scaler the code of the nearest value, or
// the lower of two that are equally near. double_quantize_scalers makes int8 codes of the scalers less their
// mean, with one factor for 256 of them. Every step is rounded to the weight's dtype. A block of zeros
// divides 0 by 0 and stores code 0, as the original does.
const qcts_kernel qcts_kernel_quantize_nf4_scalar = exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "scalar", "two passes per block; bound by 16 rounded distances per element",
    {supports_problem<qcts_kernel_quantize_nf4_scalar>,
     run_checked<qcts_kernel_quantize_nf4_scalar, scalar::quantize_nf4_problem>, nf4_workspace_bytes});

// torchao 0.18 Float8Sparse2x4_2DData2DMetadataTensor.from_hp in layout "plain": scales and codes as fp8_row;
// of every four codes the two that are not zero are stored with their places (kernels/families/sparse24.h).
// -0 counts as zero.
const qcts_kernel qcts_kernel_quantize_fp8_sparse24_scalar =
    exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", "scalar",
                "two passes per row: absolute maximum, then codes; bound by one division per element",
                {supports_problem<qcts_kernel_quantize_fp8_sparse24_scalar>,
                 scalar::quantize_sparse24_problem<qcts_kernel_quantize_fp8_sparse24_scalar>});
