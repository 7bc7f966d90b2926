// Half a byte in, two or four out: kernels/avx512/int4_dequantize.h.
#include "kernels/avx512/int4_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_int4_plain_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_plain_avx512,
                     qcts::avx2::dequantize_int4<qcts::avx2::PlainParams, qcts::avx512::WordLookups>>(
        QCTS_OP_DEQUANTIZE, "int4_plain", "avx512",
        "16 values a group, looked up by one permutation for 32 codes; bound by writing the result");
