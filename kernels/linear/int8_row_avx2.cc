// Layout and limits: kernels/avx2_int8_rows.h.
#include "kernels/avx2_int8_rows.h"

const qcts_kernel qcts_kernel_linear_int8_row_avx2 =
    qcts::avx2::linear_of<qcts_kernel_linear_int8_row_avx2, qcts::avx2::Int8Row<qcts::TorchaoRows>>(
        "int8_row",
        "64 columns a block, decoded in registers for m <= 4, to a panel above; bound by reading weights, "
        "then by "
        "fma",
        qcts::supports_problem<qcts_kernel_linear_int8_row_avx2>);
