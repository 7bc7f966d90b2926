// Layout and limits: kernels/avx512vbmi/e4m3.h, kernels/bf16/mx.h.
#include "kernels/avx512vbmi/e4m3.h"
#include "kernels/bf16/mx.h"

const qcts_kernel qcts_kernel_linear_mx_avx512vbmi =
    qcts::bf16::mx_linear_of<qcts_kernel_linear_mx_avx512vbmi, qcts::avx512vbmi::Pairs,
                             qcts::avx512vbmi::TableE4m3>(
        "64 columns a block, elements made bfloat16 (e4m3 by tables of bytes) in registers for m <= 6, to a "
        "panel above; bound by reading weights, then by the multiplications and the scales of 32 elements");
