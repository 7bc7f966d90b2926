// SPDX-License-Identifier: BSD-3-Clause
// Codes and scales equal the scalar variants'.
#include "kernels/avx2/quantize/float8_bands.h"
#include "kernels/avx2/quantize/groups.h"
#include "kernels/avx2/quantize/int4_quantize.h"
#include "kernels/avx2/quantize/int8_quantize.h"
#include "kernels/avx2/quantize/int8_tensor.h"
#include "kernels/avx2/quantize/mx.h"
#include "kernels/avx2/quantize/nf4_quantize.h"
#include "kernels/avx2/quantize/nvfp4.h"
#include "kernels/avx2/quantize/sparse24_quantize.h"

using namespace qcts;

const qcts_kernel qcts_kernel_quantize_int8_row_avx2 =
    exact_rows<qcts_kernel_quantize_int8_row_avx2, avx2::fenced<avx2::quantize_int8_rows<avx2::Int8Codes>>>(
        QCTS_OP_QUANTIZE, "int8_row", "avx2", "two passes per row, the second in cache; bound by memory");

const qcts_kernel qcts_kernel_quantize_int8_tensor_avx2 =
    exact_entry(QCTS_OP_QUANTIZE, "int8_tensor", "avx2",
                "two passes over the weight: its largest magnitude, then codes; bound by memory",
                {supports_problem<qcts_kernel_quantize_int8_tensor_avx2>,
                 run_checked<qcts_kernel_quantize_int8_tensor_avx2, avx2::quantize_int8_tensor>});

const qcts_kernel qcts_kernel_quantize_int8_tensor_reduced_avx2 =
    exact_entry(QCTS_OP_QUANTIZE, "int8_tensor_reduced", "avx2",
                "two passes over the weight: its largest magnitude, then codes; bound by memory",
                {supports_problem<qcts_kernel_quantize_int8_tensor_reduced_avx2>,
                 run_checked<qcts_kernel_quantize_int8_tensor_reduced_avx2, avx2::quantize_int8_tensor>});

const qcts_kernel qcts_kernel_quantize_int8_row_reduced_avx2 =
    exact_rows<qcts_kernel_quantize_int8_row_reduced_avx2,
               avx2::quantize_affine_groups<avx2::Int8Parts, int8_recipe>>(
        QCTS_OP_QUANTIZE, "int8_row_reduced", "avx2",
        "the row's range, then its codes; bound by two instructions per element");

const qcts_kernel qcts_kernel_quantize_int8_group_avx2 = exact_rows<
    qcts_kernel_quantize_int8_group_avx2, avx2::quantize_affine_groups<avx2::Int8Parts, int8_recipe>>(
    QCTS_OP_QUANTIZE, "int8_group", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions per element");

// The bound is two instructions per element at three per cycle, not memory.
const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx2 =
    exact_rows<qcts_kernel_quantize_int4_tinygemm_avx2, avx2::quantize_int4_rows<avx2::Int4Parts>>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "avx2",
        "ranges, parameters and codes in three passes over 32 groups; bound by two roundings per code");

const qcts_kernel qcts_kernel_quantize_fp8_row_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "fp8_row", "avx2",
    "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per eight "
    "codes",
    {supports_problem<qcts_kernel_quantize_fp8_row_avx2>,
     run_checked<qcts_kernel_quantize_fp8_row_avx2, avx2::quantize_float8_problem<avx2::Float8Parts>>});

const qcts_kernel qcts_kernel_quantize_fp8_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "fp8", "avx2",
    "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per eight "
    "codes",
    {supports_problem<qcts_kernel_quantize_fp8_avx2>,
     run_checked<qcts_kernel_quantize_fp8_avx2, avx2::quantize_float8_problem<avx2::Float8Parts>>});

const qcts_kernel qcts_kernel_quantize_intx_avx2 = exact_rows<
    qcts_kernel_quantize_intx_avx2, avx2::quantize_affine_groups<avx2::AffineParts, intx_recipe>>(
    QCTS_OP_QUANTIZE, "intx", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions per element");

const qcts_kernel qcts_kernel_quantize_mx_avx2 =
    exact_rows<qcts_kernel_quantize_mx_avx2, avx2::fenced<avx2::quantize_mx_rows<avx2::MxCodes>>>(
        QCTS_OP_QUANTIZE, "mx", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions per element");

const qcts_kernel qcts_kernel_quantize_nvfp4_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "avx2",
    "scales of eight blocks at once, then codes; bound by two instructions per element",
    {supports_problem<qcts_kernel_quantize_nvfp4_avx2>,
     run_checked<qcts_kernel_quantize_nvfp4_avx2, avx2::quantize_nvfp4_problem<avx2::Nvfp4Parts>>});

// Finds the nearest values by bounds, 16 elements at a time.
const qcts_kernel qcts_kernel_quantize_nf4_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "avx2",
    "two passes over 16 blocks: scalers, then codes by four steps of a binary search; bound by the search",
    {supports_problem<qcts_kernel_quantize_nf4_avx2>,
     run_checked<qcts_kernel_quantize_nf4_avx2, avx2::quantize_nf4_problem<avx2::Nf4Narrow>>,
     nf4_workspace_bytes});

const qcts_kernel qcts_kernel_quantize_fp8_sparse24_avx2 =
    exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", "avx2",
                "as fp8_row, a part of a row at a time, then two of every four codes are gathered",
                {supports_problem<qcts_kernel_quantize_fp8_sparse24_avx2>,
                 avx2::quantize_sparse24_problem<qcts_kernel_quantize_fp8_sparse24_avx2, avx2::Float8Parts,
                                                 avx2::Compress24>});
