// SPDX-License-Identifier: BSD-3-Clause
// Codes and scales equal the scalar variants'. Kernels with a wide loop only for bfloat16 do the rest like
// the AVX2 variant.
#include "kernels/avx512/quantize/float8_quantize.h"
#include "kernels/avx512/quantize/groups.h"
#include "kernels/avx512/quantize/int4_quantize.h"
#include "kernels/avx512/quantize/int8_quantize.h"
#include "kernels/avx512/quantize/mx_quantize.h"
#include "kernels/avx512/quantize/nf4_quantize.h"
#include "kernels/avx512/quantize/nvfp4_quantize.h"
#include "kernels/avx512/quantize/sparse24_quantize.h"

using namespace qcts;

const qcts_kernel qcts_kernel_quantize_int8_row_avx512 =
    exact_rows<qcts_kernel_quantize_int8_row_avx512,
               avx2::fenced<avx2::quantize_int8_rows<avx512::WideInt8Codes>>>(
        QCTS_OP_QUANTIZE, "int8_row", "avx512", "two passes per row, the second in cache; bound by memory");

const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx512 =
    exact_rows<qcts_kernel_quantize_int4_tinygemm_avx512, avx2::quantize_int4_rows<avx512::Int4Parts>>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "avx512",
        "ranges, parameters and codes in three passes over 32 groups; bound by a lookup and a comparison per "
        "code");

const qcts_kernel qcts_kernel_quantize_fp8_row_avx512 = exact_entry(
    QCTS_OP_QUANTIZE, "fp8_row", "avx512",
    "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per eight "
    "codes",
    {supports_problem<qcts_kernel_quantize_fp8_row_avx512>,
     run_checked<qcts_kernel_quantize_fp8_row_avx512,
                 avx2::quantize_float8_problem<avx512::WideFloat8Parts>>});

const qcts_kernel qcts_kernel_quantize_fp8_avx512 = exact_entry(
    QCTS_OP_QUANTIZE, "fp8", "avx512",
    "two passes per block, the second in cache; bound by memory in bfloat16, else by one division per eight "
    "codes",
    {supports_problem<qcts_kernel_quantize_fp8_avx512>,
     run_checked<qcts_kernel_quantize_fp8_avx512, avx2::quantize_float8_problem<avx512::WideFloat8Parts>>});

const qcts_kernel qcts_kernel_quantize_intx_avx512 =
    exact_rows<qcts_kernel_quantize_intx_avx512,
               avx2::quantize_affine_groups<avx512::WideAffine, intx_recipe>>(
        QCTS_OP_QUANTIZE, "intx", "avx512",
        "ranges, parameters and codes in three passes over 16 groups; bound by all three and by memory");

const qcts_kernel qcts_kernel_quantize_mx_avx512 =
    exact_rows<qcts_kernel_quantize_mx_avx512, avx2::fenced<avx2::quantize_mx_rows<avx512::WideMxCodes>>>(
        QCTS_OP_QUANTIZE, "mx", "avx512",
        "scales of eight blocks at once, then codes; bound by encoding and by memory");

const qcts_kernel qcts_kernel_quantize_nvfp4_avx512 = exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "avx512",
    "scales of 16 blocks at once, then codes; bound by encoding and by memory",
    {supports_problem<qcts_kernel_quantize_nvfp4_avx512>,
     run_checked<qcts_kernel_quantize_nvfp4_avx512, avx2::quantize_nvfp4_problem<avx512::WideNvfp4>>});

// Finds the nearest values by bounds, 32 elements at a time.
const qcts_kernel qcts_kernel_quantize_nf4_avx512 = exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "avx512",
    "two passes over 16 blocks: scalers, then codes by four steps of a binary search; bound by the search",
    {supports_problem<qcts_kernel_quantize_nf4_avx512>,
     run_checked<qcts_kernel_quantize_nf4_avx512, avx2::quantize_nf4_problem<avx512::WideNf4>>,
     nf4_workspace_bytes});

const qcts_kernel qcts_kernel_quantize_fp8_sparse24_avx512 =
    exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", "avx512",
                "as fp8_row, a part of a row at a time, then two of every four codes are gathered",
                {supports_problem<qcts_kernel_quantize_fp8_sparse24_avx512>,
                 avx2::quantize_sparse24_problem<qcts_kernel_quantize_fp8_sparse24_avx512,
                                                 avx512::WideFloat8Parts, avx512::WideCompress24>});
