// torchao 0.18 nvfp4_tensor.py, nvfp4_quantize: at two levels a pass over the tensor comes first
// (kernels/families/block_scales.h).
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_nvfp4_scalar = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "nvfp4", "scalar", "two passes a block, one element at a time; bound by the rounding",
    {qcts::supports_problem<qcts_kernel_quantize_nvfp4_scalar>,
     qcts::run_checked<qcts_kernel_quantize_nvfp4_scalar, qcts::scalar::quantize_nvfp4_problem>});
