// Ranges and bfloat16's codes as kernels/avx512/int4_quantize.h has them, the rest as the AVX2 variant.
#include "kernels/avx512/int4_quantize.h"

const qcts_kernel qcts_kernel_quantize_int4_tinygemm_avx512 = qcts::exact_rows<
    qcts_kernel_quantize_int4_tinygemm_avx512, qcts::avx2::quantize_int4_rows<qcts::avx512::Int4Parts>>(
    QCTS_OP_QUANTIZE, "int4_tinygemm", "avx512",
    "ranges, parameters and codes in three passes over 32 groups; bound by a lookup and a comparison a code");
