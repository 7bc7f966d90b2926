// Layout and limits: kernels/fixed/int4.h, kernels/vnni/fixed_dots.h.
#include "kernels/avx512vnni/fixed.h"

const qcts_kernel qcts_kernel_linear_int4_plain_avx512vnni =
    qcts::fixed::linear_of<qcts_kernel_linear_int4_plain_avx512vnni,
                           qcts::fixed::Int4Groups<qcts::PlainPlanes, qcts::avx512vnni::NibbleDots>>(
        "int4_plain", "avx512vnni",
        "64 columns a block; nibbles times two or four bytes of x in fixed point, by VPDPBUSD; bound by "
        "reading weights, then by the products");
