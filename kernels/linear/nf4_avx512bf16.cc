// Layout and limits: kernels/bf16/nf4.h.
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/nf4.h"

const qcts_kernel qcts_kernel_linear_nf4_avx512bf16 =
    qcts::bf16::nf4_linear_of<qcts_kernel_linear_nf4_avx512bf16, qcts::avx512bf16::Pairs>(
        "64 columns a block, the file's table looked up in registers for m <= 6, to a panel above; bound by "
        "reading weights, then by the multiplications");
