// torchao 0.18 mx_tensor.py, to_mx and _to_mx_rceil: the scale as kernels/block_scales.h has it, the codes
// eight at a time.
#include "kernels/avx2_blocks.h"

const qcts_kernel qcts_kernel_quantize_mx_avx2 = qcts::exact_rows<qcts_kernel_quantize_mx_avx2,
                                                                  qcts::avx2::quantize_mx_rows>(
    QCTS_OP_QUANTIZE, "mx", "avx2",
    "a block in registers: its largest magnitude, then its codes; bound by the rounding, eight at a time");
