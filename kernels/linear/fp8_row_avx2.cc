// kernels/avx2/fp8_linear.h.
#include "kernels/avx2/fp8_linear.h"

const qcts_kernel qcts_kernel_linear_fp8_row_avx2 = qcts::avx2::linear_of<qcts_kernel_linear_fp8_row_avx2,
                                                                          qcts::avx2::Fp8Row>(
    "fp8_row",
    "64 columns a block, decoded in registers for m <= 4, to a panel above; bound by reading weights, then "
    "by "
    "fma",
    qcts::supports_problem<qcts_kernel_linear_fp8_row_avx2>);
