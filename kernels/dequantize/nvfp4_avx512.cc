// Half a byte in, two or four out: kernels/avx512/nvfp4_dequantize.h.
#include "kernels/avx512/nvfp4_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_nvfp4_avx512 = qcts::exact_rows<
    qcts_kernel_dequantize_nvfp4_avx512,
    qcts::avx2::fenced<qcts::avx2::dequantize_nvfp4<qcts::avx512::Nvfp4Words>>>(
    QCTS_OP_DEQUANTIZE, "nvfp4", "avx512",
    "magnitudes of two blocks of 16 in a table, looked up by one permutation for both; bound by writing the "
    "result");
