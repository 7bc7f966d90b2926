// int8_tensor with the codes of reduce_range=True: -64 .. 63, the same meaning.
#include "kernels/scalar/affine.h"

const qcts_kernel qcts_kernel_dequantize_int8_tensor_reduced_scalar =
    qcts::exact_rows<qcts_kernel_dequantize_int8_tensor_reduced_scalar,
                     qcts::scalar::dequantize_affine_tensor>(
        QCTS_OP_DEQUANTIZE, "int8_tensor_reduced", "scalar",
        "one subtraction, one multiplication and one rounding an element");
