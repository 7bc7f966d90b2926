// SPDX-License-Identifier: BSD-3-Clause
// Codes and scales equal the scalar variants'.
#include "kernels/avx2/quantize/float8_bands.h"
#include "kernels/avx2/quantize/groups.h"
#include "kernels/avx2/quantize/int8_activation.h"
#include "kernels/avx2/quantize/mx.h"
#include "kernels/avx2/quantize/nvfp4.h"

using namespace qcts;

const qcts_kernel qcts_kernel_quantize_activation_fp8_row_avx2 =
    activation_whole<qcts_kernel_quantize_activation_fp8_row_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "fp8_row:dyn_row,dyn_row_mslk", "avx2",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_fp8_avx2 =
    activation_whole<qcts_kernel_quantize_activation_fp8_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "avx2",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx2 =
    activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx2,
                    avx2::quantize_int8_dyn_rows<avx2::RowsToInt8>>(
        kInt8RowX, "avx2", "a row's range, unless the scale is given, then codes; bound by both");

const qcts_kernel qcts_kernel_quantize_activation_int8_tensor_dyn_avx2 =
    activation_rows<qcts_kernel_quantize_activation_int8_tensor_dyn_avx2,
                    avx2::quantize_int8_dyn_rows<avx2::RowsToInt8>>(
        kInt8TensorX, "avx2", "a row's range, unless the scale is given, then codes; bound by both");

const qcts_kernel qcts_kernel_quantize_activation_int8_row_reduced_dyn_avx2 =
    activation_rows<qcts_kernel_quantize_activation_int8_row_reduced_dyn_avx2,
                    avx2::quantize_int8_dyn_rows<avx2::RowsToCodes<ReducedRange>>>(
        kInt8RowReducedX, "avx2", "a row's range, unless the scale is given, then codes; bound by both");

const qcts_kernel qcts_kernel_quantize_activation_int8_tensor_reduced_dyn_avx2 =
    activation_rows<qcts_kernel_quantize_activation_int8_tensor_reduced_dyn_avx2,
                    avx2::quantize_int8_dyn_rows<avx2::RowsToCodes<ReducedRange>>>(
        kInt8TensorReducedX, "avx2", "a row's range, unless the scale is given, then codes; bound by both");

const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_avx2 =
    activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "avx2",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_float_weight_avx2 =
    activation_whole<qcts_kernel_quantize_activation_float_weight_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "float_weight:dyn_row_fbgemm", "avx2",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_intx_avx2 = activation_rows<
    qcts_kernel_quantize_activation_intx_avx2, avx2::quantize_affine_groups<avx2::AffineParts, intx_recipe>>(
    "intx:dyn_token_asym", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions per element");

const qcts_kernel qcts_kernel_quantize_activation_mx_avx2 =
    activation_rows<qcts_kernel_quantize_activation_mx_avx2,
                    avx2::fenced<avx2::quantize_mx_rows<avx2::MxCodes>>>(
        "mx:dyn_block32", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions per element");

const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx2 =
    activation_whole<qcts_kernel_quantize_activation_nvfp4_avx2,
                     avx2::quantize_nvfp4_problem<avx2::Nvfp4Parts>>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions per element");
