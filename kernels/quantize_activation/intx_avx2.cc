// Rows of x of 8da4w (torchao 0.18 _apply_int8_act_asym_per_token_quant_dequant): parameters as
// kernels/families/affine_groups.h has them.
#include "kernels/avx2/groups.h"

const qcts_kernel qcts_kernel_quantize_activation_intx_avx2 = qcts::activation_rows<
    qcts_kernel_quantize_activation_intx_avx2, qcts::avx2::quantize_affine_groups<qcts::avx2::AffineParts>>(
    "intx:dyn_token_asym", "avx2",
    "ranges, parameters and codes in three passes over eight groups; bound by two instructions an element");
