// x as kernels/quantize/mx_scalar.cc has the weight (torchao 0.18 mx_tensor.py, MXTensor.to_mx by
// act_quant_kwargs).
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_activation_mx_scalar =
    qcts::activation_rows<qcts_kernel_quantize_activation_mx_scalar, qcts::scalar::quantize_mx_rows>(
        "mx:dyn_block32", "scalar", "two passes a block, one element at a time; bound by the rounding");
