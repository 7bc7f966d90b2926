// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: at two levels a pass over the tensor comes first
// (kernels/families/block_scales.h).
#include "kernels/avx512/nvfp4_quantize.h"

const qcts_kernel qcts_kernel_quantize_nvfp4_avx512 =
    qcts::exact_entry(QCTS_OP_QUANTIZE, "nvfp4", "avx512",
                      "scales of 16 blocks at once, then codes; bound by these and by memory",
                      {qcts::supports_problem<qcts_kernel_quantize_nvfp4_avx512>,
                       qcts::run_checked<qcts_kernel_quantize_nvfp4_avx512,
                                         qcts::avx2::quantize_nvfp4_problem<qcts::avx512::WideNvfp4>>});
