#include "kernels/avx2/float8_bands.h"
#include "kernels/avx2/groups.h"
#include "kernels/avx2/int8_activation.h"
#include "kernels/avx2/mx.h"
#include "kernels/avx2/nvfp4.h"

using namespace qcts;

// x by the same rules as the weight in kernels/quantize/fp8_row_avx2.cc, with bounds where given
// (kernels/families/float8_scales.h).
const qcts_kernel qcts_kernel_quantize_activation_fp8_row_avx2 =
    activation_whole<qcts_kernel_quantize_activation_fp8_row_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "fp8_row:dyn_row,dyn_row_mslk", "avx2",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");

// x by the same rules as the weight in kernels/quantize/fp8_avx2.cc, with bounds where given
// (kernels/families/float8_scales.h).
const qcts_kernel qcts_kernel_quantize_activation_fp8_avx2 =
    activation_whole<qcts_kernel_quantize_activation_fp8_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "avx2",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");

// Rows of x to int8: kernels/avx2/int8_activation.h.
const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx2 =
    activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx2,
                    avx2::quantize_int8_dyn_rows<avx2::RowsToInt8>>(
        kInt8RowX, "avx2", "a row's range, unless the scale is given, then codes; bound by these");

// x as fp8_row has it (kernels/quantize_activation/fp8_row_avx2.cc): the weight alone is sparse.
const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_avx2 =
    activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_avx2,
                     avx2::quantize_float8_problem<avx2::Float8Parts>>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "avx2",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");

// Rows of x of 8da4w (torchao 0.18 _apply_int8_act_asym_per_token_quant_dequant): parameters as
// kernels/families/affine_groups.h has them.
const qcts_kernel qcts_kernel_quantize_activation_intx_avx2 = activation_rows<
    qcts_kernel_quantize_activation_intx_avx2, avx2::quantize_affine_groups<avx2::AffineParts>>(
    "intx:dyn_token_asym", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions an element");

// x as kernels/quantize/mx_avx2.cc has the weight (torchao 0.18 mx_tensor.py, MXTensor.to_mx by
// act_quant_kwargs).
const qcts_kernel qcts_kernel_quantize_activation_mx_avx2 =
    activation_rows<qcts_kernel_quantize_activation_mx_avx2,
                    avx2::fenced<avx2::quantize_mx_rows<avx2::MxCodes>>>(
        "mx:dyn_block32", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions an element");

// x as kernels/quantize/nvfp4_avx2.cc has the weight (torchao 0.18 nvfp4_tensor.py, nvfp4_linear).
const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx2 =
    activation_whole<qcts_kernel_quantize_activation_nvfp4_avx2,
                     avx2::quantize_nvfp4_problem<avx2::Nvfp4Parts>>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions an element");
