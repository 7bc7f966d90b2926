// x as kernels/quantize/nvfp4_scalar.cc has the weight (torchao 0.18 nvfp4_tensor.py, nvfp4_linear).
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_activation_nvfp4_scalar =
    qcts::activation_whole<qcts_kernel_quantize_activation_nvfp4_scalar,
                           qcts::scalar::quantize_nvfp4_problem>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "scalar",
        "two passes a block, one element at a time; bound by the rounding");
