// Half a byte in, two or four out: kernels/avx512/nf4_dequantize.h.
#include "kernels/avx512/nf4_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_nf4_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_nf4_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_nf4<qcts::avx512::Nf4Words>>>(
        QCTS_OP_DEQUANTIZE, "nf4", "avx512",
        "16 values a block, looked up by one permutation for 32 codes; bound by writing the result");
