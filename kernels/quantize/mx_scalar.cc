// torchao 0.18 mx_tensor.py, to_mx and _to_mx_rceil (kernels/families/block_scales.h).
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_mx_scalar =
    qcts::exact_rows<qcts_kernel_quantize_mx_scalar, qcts::scalar::quantize_mx_rows>(
        QCTS_OP_QUANTIZE, "mx", "scalar", "two passes a block, one element at a time; bound by the rounding");
