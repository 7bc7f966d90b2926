// kernels/avx2/nvfp4_dequantize.h.
#include "kernels/avx2/nvfp4_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_nvfp4_avx2 = qcts::exact_rows<
    qcts_kernel_dequantize_nvfp4_avx2,
    qcts::avx2::fenced<qcts::avx2::dequantize_nvfp4<qcts::avx2::Nvfp4Fractions>>>(
    QCTS_OP_DEQUANTIZE, "nvfp4", "avx2",
    "two fractions a block of 16, exponents added, looked up by byte shuffles; bound by making the tables");
