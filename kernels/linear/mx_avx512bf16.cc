// Layout and limits: kernels/bf16/mx.h.
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/mx.h"

const qcts_kernel qcts_kernel_linear_mx_avx512bf16 =
    qcts::bf16::mx_linear_of<qcts_kernel_linear_mx_avx512bf16, qcts::avx512bf16::Pairs>(
        "64 columns a block, elements made bfloat16 in registers for m <= 6, to a panel above; bound by "
        "reading weights, then by the multiplications and the scales of 32 elements");
