// torchao 0.18 Int8Tensor with PerGroup(g).
#include "kernels/scalar/affine.h"

const qcts_kernel qcts_kernel_dequantize_int8_group_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_int8_group_scalar, qcts::scalar::dequantize_affine_groups>(
        QCTS_OP_DEQUANTIZE, "int8_group", "scalar",
        "one subtraction, one multiplication and one rounding an element");
