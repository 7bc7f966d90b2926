#include "kernels/avx512/float8_quantize.h"
#include "kernels/avx512/groups.h"
#include "kernels/avx512/int8_activation.h"
#include "kernels/avx512/mx_quantize.h"
#include "kernels/avx512/nvfp4_quantize.h"

using namespace qcts;

// x by the same rules as the weight in kernels/quantize/fp8_row_avx512.cc, with bounds where given
// (kernels/families/float8_scales.h).
const qcts_kernel qcts_kernel_quantize_activation_fp8_row_avx512 =
    activation_whole<qcts_kernel_quantize_activation_fp8_row_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "fp8_row:dyn_row,dyn_row_mslk", "avx512",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");

// x by the same rules as the weight in kernels/quantize/fp8_avx512.cc, with bounds where given
// (kernels/families/float8_scales.h).
const qcts_kernel qcts_kernel_quantize_activation_fp8_avx512 =
    activation_whole<qcts_kernel_quantize_activation_fp8_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "avx512",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");

// Rows of x to int8: kernels/avx512/int8_activation.h.
const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx512 =
    activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx512,
                    avx2::quantize_int8_dyn_rows<avx512::RowsToInt8>>(
        kInt8RowX, "avx512", "a row's range, unless the scale is given, then codes; bound by these");

// x as fp8_row has it (kernels/quantize_activation/fp8_row_avx512.cc): the weight alone is sparse.
const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_avx512 =
    activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_avx512,
                     avx2::quantize_float8_problem<avx512::WideFloat8Parts>>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "avx512",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");

// Rows of x of 8da4w (torchao 0.18 _apply_int8_act_asym_per_token_quant_dequant): parameters as
// kernels/families/affine_groups.h has them.
const qcts_kernel qcts_kernel_quantize_activation_intx_avx512 =
    activation_rows<qcts_kernel_quantize_activation_intx_avx512,
                    avx2::quantize_affine_groups<avx512::WideAffine>>(
        "intx:dyn_token_asym", "avx512",
        "ranges, parameters and codes in three passes over 16 groups; bound by these and by memory");

// x as kernels/quantize/mx_avx512.cc has the weight (torchao 0.18 mx_tensor.py, MXTensor.to_mx by
// act_quant_kwargs).
const qcts_kernel qcts_kernel_quantize_activation_mx_avx512 =
    activation_rows<qcts_kernel_quantize_activation_mx_avx512,
                    avx2::fenced<avx2::quantize_mx_rows<avx512::WideMxCodes>>>(
        "mx:dyn_block32", "avx512",
        "scales of eight blocks at once, then codes; bound by these and by memory");

// x as kernels/quantize/nvfp4_avx512.cc has the weight (torchao 0.18 nvfp4_tensor.py, nvfp4_linear).
const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx512 =
    activation_whole<qcts_kernel_quantize_activation_nvfp4_avx512,
                     avx2::quantize_nvfp4_problem<avx512::WideNvfp4>>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx512",
        "scales of 16 blocks at once, then codes; bound by these and by memory");
