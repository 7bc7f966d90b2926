// kernels/avx2/float8_dequantize.h.
#include "kernels/avx2/float8_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_fp8_row_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_fp8_row_avx2,
                     qcts::avx2::fenced<qcts::avx2::dequantize_float8<qcts::avx2::Float8Groups>>>(
        QCTS_OP_DEQUANTIZE, "fp8_row", "avx2", "eight elements at a time; bound by writing the result");
