// Rows of x of 8da4w (torchao 0.18 _apply_int8_act_asym_per_token_quant_dequant): parameters as
// kernels/families/affine_groups.h has them.
#include "kernels/avx512/groups.h"

const qcts_kernel qcts_kernel_quantize_activation_intx_avx512 =
    qcts::activation_rows<qcts_kernel_quantize_activation_intx_avx512,
                          qcts::avx2::quantize_affine_groups<qcts::avx512::WideAffine>>(
        "intx:dyn_token_asym", "avx512",
        "ranges, parameters and codes in three passes over 16 groups; bound by these and by memory");
