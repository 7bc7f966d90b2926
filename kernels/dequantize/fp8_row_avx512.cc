// One byte in, two or four out: kernels/avx512/float8_dequantize.h.
#include "kernels/avx512/float8_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_row_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_float8<qcts::avx512::Float8Tables>>>(
        QCTS_OP_DEQUANTIZE, "fp8_row", "avx512",
        "128 products a scale, looked up by permutations for 32 codes; bound by writing the result");
