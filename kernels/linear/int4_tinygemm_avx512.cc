// Layout and limits: kernels/avx512/int4.h, kernels/avx512/words.h.
#include "kernels/avx512/int4.h"

const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx512 =
    qcts::avx512::linear_of<qcts_kernel_linear_int4_tinygemm_avx512,
                            qcts::avx512::Int4Words<qcts::TinygemmPlanes>>(
        "int4_tinygemm",
        "64 columns a block, nibbles looked up in registers for m <= 4, to a panel above; bound by "
        "decoding, then by fma");
