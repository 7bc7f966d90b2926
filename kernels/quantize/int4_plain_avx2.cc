// All of kernels/avx2/int4_plain_quantize.h.
#include "kernels/avx2/int4_plain_quantize.h"

const qcts_kernel qcts_kernel_quantize_int4_plain_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_int4_plain_avx2,
                     qcts::avx2::quantize_int4_plain<qcts::avx2::PlainParts>>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx2",
        "ranges, parameters and codes in three passes over 32 groups; bound by an operation an element");
