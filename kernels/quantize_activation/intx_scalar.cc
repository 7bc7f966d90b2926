// Rows of x of 8da4w (torchao 0.18 _apply_int8_act_asym_per_token_quant_dequant): parameters as
// kernels/families/affine_groups.h has them.
#include "kernels/scalar/groups.h"

const qcts_kernel qcts_kernel_quantize_activation_intx_scalar =
    qcts::activation_rows<qcts_kernel_quantize_activation_intx_scalar, qcts::scalar::quantize_affine_groups>(
        "intx:dyn_token_asym", "scalar",
        "two passes a group: its range, then its codes; bound by the rounding, one element at a time");
