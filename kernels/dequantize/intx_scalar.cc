// torchao 0.18 IntxUnpackedToInt8Tensor: codes of one to eight bits, one a byte.
#include "kernels/scalar/affine.h"

const qcts_kernel qcts_kernel_dequantize_intx_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_intx_scalar, qcts::scalar::dequantize_affine_groups>(
        QCTS_OP_DEQUANTIZE, "intx", "scalar",
        "one subtraction, one multiplication and one rounding an element");
