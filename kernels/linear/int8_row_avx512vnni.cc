// Layout and limits: kernels/fixed/int8.h, kernels/vnni/fixed_dots.h.
#include "kernels/avx512vnni/fixed.h"

const qcts_kernel qcts_kernel_linear_int8_row_avx512vnni =
    qcts::fixed::linear_of<qcts_kernel_linear_int8_row_avx512vnni,
                           qcts::fixed::Int8Rows<qcts::TorchaoRows, qcts::avx512vnni::ByteDots>>(
        "int8_row", "avx512vnni",
        "64 columns a block; codes times two or four bytes of x in fixed point, by VPDPBUSD; bound by "
        "reading weights, then by the products");
