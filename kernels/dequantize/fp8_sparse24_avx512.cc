// kernels/avx512/sparse24_dequantize.h.
#include "kernels/avx512/sparse24_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_fp8_sparse24_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_sparse24_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_sparse24<qcts::avx512::SparseTables>>>(
        QCTS_OP_DEQUANTIZE, "fp8_sparse24", "avx512",
        "values looked up by permutations, which put them in their places too; bound by writing the result");
