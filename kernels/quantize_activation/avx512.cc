// SPDX-License-Identifier: BSD-3-Clause
// Codes and scales equal the scalar variants'.
#include "kernels/avx512/quantize/float8_quantize.h"
#include "kernels/avx512/quantize/int8_activation.h"
#include "kernels/avx512/quantize/mx_quantize.h"
#include "kernels/avx512/quantize/nvfp4_quantize.h"

using namespace qcts;

const qcts_kernel qcts_kernel_quantize_activation_fp8_row_avx512 =
    activation_whole<qcts_kernel_quantize_activation_fp8_row_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "fp8_row:dyn_row,dyn_row_mslk", "avx512",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_fp8_avx512 =
    activation_whole<qcts_kernel_quantize_activation_fp8_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "avx512",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx512 =
    activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx512,
                    avx2::quantize_int8_dyn_rows<avx512::RowsToInt8>>(
        kInt8RowX, "avx512", "a row's range, unless the scale is given, then codes; bound by both");

const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_avx512 =
    activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "avx512",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_float_weight_avx512 =
    activation_whole<qcts_kernel_quantize_activation_float_weight_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "float_weight:dyn_row_fbgemm", "avx512",
        "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per "
        "eight codes");

const qcts_kernel qcts_kernel_quantize_activation_mx_avx512 =
    activation_rows<qcts_kernel_quantize_activation_mx_avx512,
                    avx2::fenced<avx2::quantize_mx_rows<avx512::WideMxCodes>>>(
        "mx:dyn_block32", "avx512",
        "scales of eight blocks at once, then codes; bound by encoding and by memory");

const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx512 =
    activation_whole<qcts_kernel_quantize_activation_nvfp4_avx512,
                     avx2::quantize_nvfp4_problem<avx512::WideNvfp4>>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx512",
        "scales of 16 blocks at once, then codes; bound by encoding and by memory");
