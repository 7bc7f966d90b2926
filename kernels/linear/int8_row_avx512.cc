// Layout and limits: kernels/avx512/int8_rows.h.
#include "kernels/avx512/int8_rows.h"

const qcts_kernel qcts_kernel_linear_int8_row_avx512 =
    qcts::avx512::linear_of<qcts_kernel_linear_int8_row_avx512, qcts::avx512::Int8Row<qcts::TorchaoRows>>(
        "int8_row",
        "64 columns a block, decoded in registers for m <= 4, to a panel above; bound by reading weights, "
        "then by fma");
