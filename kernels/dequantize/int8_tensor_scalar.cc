// torchao 0.18 Int8Tensor with PerTensor().
#include "kernels/scalar/affine.h"

const qcts_kernel qcts_kernel_dequantize_int8_tensor_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_int8_tensor_scalar, qcts::scalar::dequantize_affine_tensor>(
        QCTS_OP_DEQUANTIZE, "int8_tensor", "scalar",
        "one subtraction, one multiplication and one rounding an element");
