// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: at two levels a pass over the tensor comes first
// (kernels/families/block_scales.h).
#include "kernels/avx2/nvfp4.h"

const qcts_kernel qcts_kernel_quantize_nvfp4_avx2 =
    qcts::exact_entry(QCTS_OP_QUANTIZE, "nvfp4", "avx2",
                      "scales of eight blocks at once, then codes; bound by two instructions an element",
                      {qcts::supports_problem<qcts_kernel_quantize_nvfp4_avx2>,
                       qcts::run_checked<qcts_kernel_quantize_nvfp4_avx2,
                                         qcts::avx2::quantize_nvfp4_problem<qcts::avx2::Nvfp4Parts>>});
