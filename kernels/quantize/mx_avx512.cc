// torchao 0.18 mx_tensor.py, to_mx and _to_mx_rceil: the scale as kernels/families/block_scales.h has it.
#include "kernels/avx512/mx_quantize.h"

const qcts_kernel qcts_kernel_quantize_mx_avx512 =
    qcts::exact_rows<qcts_kernel_quantize_mx_avx512,
                     qcts::avx2::fenced<qcts::avx2::quantize_mx_rows<qcts::avx512::WideMxCodes>>>(
        QCTS_OP_QUANTIZE, "mx", "avx512",
        "scales of eight blocks at once, then codes; bound by these and by memory");
