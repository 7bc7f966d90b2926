// kernels/avx2/sparse24_dequantize.h.
#include "kernels/avx2/sparse24_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_sparse24_avx2,
                     qcts::avx2::fenced<qcts::avx2::dequantize_sparse24<qcts::avx2::SparseRows>>>(
        QCTS_OP_DEQUANTIZE, "fp8_sparse24", "avx2",
        "expanded to a byte a code by byte shuffles, then as fp8_row; bound by writing the result");
