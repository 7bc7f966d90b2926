// x as kernels/quantize/nvfp4_avx512.cc has the weight (torchao 0.18 nvfp4_tensor.py, nvfp4_linear).
#include "kernels/avx512/nvfp4_quantize.h"

const qcts_kernel qcts_kernel_quantize_activation_nvfp4_avx512 =
    qcts::activation_whole<qcts_kernel_quantize_activation_nvfp4_avx512,
                           qcts::avx2::quantize_nvfp4_problem<qcts::avx512::WideNvfp4>>(
        "nvfp4:dyn_block16,dyn_tensor_block16,static_tensor_block16", "avx512",
        "scales of 16 blocks at once, then codes; bound by these and by memory");
