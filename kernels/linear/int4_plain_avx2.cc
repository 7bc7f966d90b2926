// Layout and limits: kernels/avx2_int4.h.
#include "kernels/avx2_int4.h"

const qcts_kernel qcts_kernel_linear_int4_plain_avx2 =
    qcts::avx2::linear_of<qcts_kernel_linear_int4_plain_avx2, qcts::avx2::Int4Linear<qcts::PlainPlanes>>(
        "int4_plain",
        "64 columns a block, nibbles looked up in registers for m <= 4, to a panel above; bound by decoding, "
        "then by fma",
        qcts::supports_problem<qcts_kernel_linear_int4_plain_avx2>);
