// x as kernels/quantize/nvfp4_avx2.cc has the weight (torchao 0.18 nvfp4_tensor.py, nvfp4_linear).
#include "kernels/avx2/nvfp4.h"

const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx2 =
    qcts::activation_whole<qcts_kernel_quantize_activation_nvfp4_avx2,
                           qcts::avx2::quantize_nvfp4_problem<qcts::avx2::Nvfp4Parts>>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions an element");
