// Parameters and codes as kernels/avx2/int4_quantize.h has them. Two instructions an element, three a cycle:
// that, not memory, is the bound.
#include "kernels/avx2/int4_quantize.h"

const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_int4_tinygemm_avx2,
                     qcts::avx2::quantize_int4_rows<qcts::avx2::Int4Parts>>(
        QCTS_OP_QUANTIZE, "int4_tinygemm", "avx2",
        "ranges, parameters and codes in three passes over 32 groups; bound by two roundings a code");
