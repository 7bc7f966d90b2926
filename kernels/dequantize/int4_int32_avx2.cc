// Half a byte in, two or four out: kernels/avx2/int4_dequantize.h.
#include "kernels/avx2/int4_params.h"

const qcts_kernel qcts_kernel_dequantize_int4_int32_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int4_int32_avx2,
                     qcts::avx2::dequantize_int4<qcts::avx2::Int32Params, qcts::avx2::ByteShuffles>>(
        QCTS_OP_DEQUANTIZE, "int4_int32", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
