// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scalar/affine.h"
#include "kernels/scalar/float8.h"

using namespace qcts;

// torchao 0.18 Int8Tensor with PerRow().
const qcts_kernel qcts_kernel_dequantize_int8_row_scalar =
    exact_rows<qcts_kernel_dequantize_int8_row_scalar, scalar::dequantize_affine_rows>(
        QCTS_OP_DEQUANTIZE, "int8_row", "scalar",
        "one subtraction, one multiplication and one rounding per element");

const qcts_kernel qcts_kernel_dequantize_fp8_row_scalar =
    exact_rows<qcts_kernel_dequantize_fp8_row_scalar, scalar::dequantize_float8>(
        QCTS_OP_DEQUANTIZE, "fp8_row", "scalar",
        "one decoding, one multiplication and one rounding per element");

// torchao 0.18 Int8Tensor with PerTensor().
const qcts_kernel qcts_kernel_dequantize_int8_tensor_scalar =
    exact_rows<qcts_kernel_dequantize_int8_tensor_scalar, scalar::dequantize_affine_tensor>(
        QCTS_OP_DEQUANTIZE, "int8_tensor", "scalar",
        "one subtraction, one multiplication and one rounding per element");

// int8_row with the codes of reduce_range=True, -64 .. 63, which mean the same.
const qcts_kernel qcts_kernel_dequantize_int8_row_reduced_scalar =
    exact_rows<qcts_kernel_dequantize_int8_row_reduced_scalar, scalar::dequantize_affine_rows>(
        QCTS_OP_DEQUANTIZE, "int8_row_reduced", "scalar",
        "one subtraction, one multiplication and one rounding per element");

// int8_tensor with the codes of reduce_range=True, -64 .. 63, which mean the same.
const qcts_kernel qcts_kernel_dequantize_int8_tensor_reduced_scalar =
    exact_rows<qcts_kernel_dequantize_int8_tensor_reduced_scalar, scalar::dequantize_affine_tensor>(
        QCTS_OP_DEQUANTIZE, "int8_tensor_reduced", "scalar",
        "one subtraction, one multiplication and one rounding per element");

// torchao 0.18 Int8Tensor with PerGroup(g).
const qcts_kernel qcts_kernel_dequantize_int8_group_scalar =
    exact_rows<qcts_kernel_dequantize_int8_group_scalar, scalar::dequantize_affine_groups>(
        QCTS_OP_DEQUANTIZE, "int8_group", "scalar",
        "one subtraction, one multiplication and one rounding per element");

// torchao 0.5 to 0.17 AffineQuantizedTensor of int8_weight_only: other codes, the same meaning.
const qcts_kernel qcts_kernel_dequantize_int8_row_v1_scalar =
    exact_rows<qcts_kernel_dequantize_int8_row_v1_scalar, scalar::dequantize_affine_rows>(
        QCTS_OP_DEQUANTIZE, "int8_row_v1", "scalar",
        "one subtraction, one multiplication and one rounding per element");

const qcts_kernel qcts_kernel_dequantize_int8_group_v1_scalar =
    exact_rows<qcts_kernel_dequantize_int8_group_v1_scalar, scalar::dequantize_affine_groups>(
        QCTS_OP_DEQUANTIZE, "int8_group_v1", "scalar",
        "one subtraction, one multiplication and one rounding per element");

// torchao 0.18 IntxUnpackedToInt8Tensor: codes of one to eight bits, one per byte.
const qcts_kernel qcts_kernel_dequantize_intx_scalar =
    exact_rows<qcts_kernel_dequantize_intx_scalar, scalar::dequantize_affine_groups>(
        QCTS_OP_DEQUANTIZE, "intx", "scalar",
        "one subtraction, one multiplication and one rounding per element");

const qcts_kernel qcts_kernel_dequantize_fp8_scalar =
    exact_rows<qcts_kernel_dequantize_fp8_scalar, scalar::dequantize_float8>(
        QCTS_OP_DEQUANTIZE, "fp8", "scalar", "one decoding, one multiplication and one rounding per element");
