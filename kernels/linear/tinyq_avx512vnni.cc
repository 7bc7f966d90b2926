// Layout and limits: kernels/fixed_int8.h, kernels/vnni_fixed_dots.h.
#include "kernels/avx512vnni_fixed.h"

const qcts_kernel qcts_kernel_linear_tinyq_avx512vnni =
    qcts::fixed::linear_of<qcts_kernel_linear_tinyq_avx512vnni,
                           qcts::fixed::Int8Rows<qcts::TinyqRows, qcts::avx512vnni::ByteDots>>(
        "tinyq", "avx512vnni",
        "64 columns a block; codes times two bytes of x in fixed point, four of those of float32, four "
        "products an "
        "operation, bound by reading weights");
