// torchao 0.18 mx_tensor.py, to_mx and _to_mx_rceil: the scale as kernels/families/block_scales.h has it.
#include "kernels/avx2/mx.h"

const qcts_kernel qcts_kernel_quantize_mx_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_mx_avx2,
                     qcts::avx2::fenced<qcts::avx2::quantize_mx_rows<qcts::avx2::MxCodes>>>(
        QCTS_OP_QUANTIZE, "mx", "avx2",
        "scales of eight blocks at once, then codes; bound by two instructions an element");
