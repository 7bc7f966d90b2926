// kernels/avx2/nf4_dequantize.h.
#include "kernels/avx2/nf4_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_nf4_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_nf4_avx2,
                     qcts::avx2::fenced<qcts::avx2::dequantize_nf4<qcts::avx2::Nf4Bytes>>>(
        QCTS_OP_DEQUANTIZE, "nf4", "avx2",
        "16 values a group, looked up by byte shuffles; bound by writing the result");
