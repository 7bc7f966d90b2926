#include "kernels/avx2/float8_bands.h"
#include "kernels/avx2/groups.h"
#include "kernels/avx2/int4_plain_quantize.h"
#include "kernels/avx2/int4_quantize.h"
#include "kernels/avx2/int8_quantize.h"
#include "kernels/avx2/mx.h"
#include "kernels/avx2/nf4_quantize.h"
#include "kernels/avx2/nvfp4.h"
#include "kernels/avx2/sparse24_quantize.h"

using namespace qcts;

// torchao 0.18 Int8Tensor.from_hp per row: kernels/avx2/int8_quantize.h.
const qcts_kernel qcts_kernel_quantize_int8_row_avx2 =
    exact_rows<qcts_kernel_quantize_int8_row_avx2, avx2::fenced<avx2::quantize_int8_rows<avx2::Int8Codes>>>(
        QCTS_OP_QUANTIZE, "int8_row", "avx2", "two passes a row, the second in cache; bound by memory");

// Parameters and codes as kernels/avx2/int4_quantize.h has them. Two instructions an element, three a cycle:
// that, not memory, is the bound.
const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx2 =
    exact_rows<qcts_kernel_quantize_int4_tinygemm_avx2, avx2::quantize_int4_rows<avx2::Int4Parts>>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "avx2",
        "ranges, parameters and codes in three passes over 32 groups; bound by two roundings a code");

// torchao 0.18 Float8Tensor.from_hp, a scale a row: the torch path (quant_primitives.py:
// _choose_scale_float8, _quantize_affine_float8). The scale has no floor: a block of zeros divides 0 by 0 and
// stores NaN codes, as the original does.
const qcts_kernel qcts_kernel_quantize_fp8_row_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "fp8_row", "avx2",
    "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for eight "
    "codes",
    {supports_problem<qcts_kernel_quantize_fp8_row_avx2>,
     run_checked<qcts_kernel_quantize_fp8_row_avx2, avx2::quantize_float8_problem<avx2::Float8Parts>>});

// torchao 0.18 Float8Tensor.from_hp, a scale for all, for 128 x 128, for a row, for a group of one: the torch
// path (quant_primitives.py: _choose_scale_float8, _quantize_affine_float8). The scale has no floor: a block
// of zeros divides 0 by 0 and stores NaN codes, as the original does.
const qcts_kernel qcts_kernel_quantize_fp8_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "fp8", "avx2",
    "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for eight "
    "codes",
    {supports_problem<qcts_kernel_quantize_fp8_avx2>,
     run_checked<qcts_kernel_quantize_fp8_avx2, avx2::quantize_float8_problem<avx2::Float8Parts>>});

// All of kernels/avx2/int4_plain_quantize.h.
const qcts_kernel qcts_kernel_quantize_int4_plain_avx2 =
    exact_rows<qcts_kernel_quantize_int4_plain_avx2, avx2::quantize_int4_plain<avx2::PlainParts>>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx2",
        "ranges, parameters and codes in three passes over 32 groups; bound by an operation an element");

// torchao 0.18 IntxUnpackedToInt8Tensor.from_hp: parameters as kernels/families/affine_groups.h has them.
const qcts_kernel qcts_kernel_quantize_intx_avx2 = exact_rows<
    qcts_kernel_quantize_intx_avx2, avx2::quantize_affine_groups<avx2::AffineParts>>(
    QCTS_OP_QUANTIZE, "intx", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions an element");

// torchao 0.18 mx_tensor.py, to_mx and _to_mx_rceil: the scale as kernels/families/block_scales.h has it.
const qcts_kernel qcts_kernel_quantize_mx_avx2 =
    exact_rows<qcts_kernel_quantize_mx_avx2, avx2::fenced<avx2::quantize_mx_rows<avx2::MxCodes>>>(
        QCTS_OP_QUANTIZE, "mx", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions an element");

// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: at two levels a pass over the tensor comes first
// (kernels/families/block_scales.h).
const qcts_kernel qcts_kernel_quantize_nvfp4_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "avx2",
    "scales of eight blocks at once, then codes; bound by two instructions an element",
    {supports_problem<qcts_kernel_quantize_nvfp4_avx2>,
     run_checked<qcts_kernel_quantize_nvfp4_avx2, avx2::quantize_nvfp4_problem<avx2::Nvfp4Parts>>});

// nf4_scalar.cc by bounds, 16 elements at a time.
const qcts_kernel qcts_kernel_quantize_nf4_avx2 = exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "avx2",
    "two passes over 16 blocks: scalers, then codes by four steps of a binary search; bound by these",
    {supports_problem<qcts_kernel_quantize_nf4_avx2>,
     run_checked<qcts_kernel_quantize_nf4_avx2, avx2::quantize_nf4_problem<avx2::Nf4Narrow>>,
     nf4_workspace_bytes});

// kernels/avx2/sparse24_quantize.h.
const qcts_kernel qcts_kernel_quantize_fp8_sparse24_avx2 =
    exact_entry(QCTS_OP_QUANTIZE, "fp8_sparse24", "avx2",
                "as fp8_row, a part of a row at a time, of which two of four codes are gathered",
                {supports_problem<qcts_kernel_quantize_fp8_sparse24_avx2>,
                 avx2::quantize_sparse24_problem<qcts_kernel_quantize_fp8_sparse24_avx2, avx2::Float8Parts,
                                                 avx2::Compress24>});
