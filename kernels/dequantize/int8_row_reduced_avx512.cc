// int8_row with the codes of reduce_range=True. One byte in, two or four out: kernels/avx512/scaled.h.
#include "kernels/avx512/scaled.h"

const qcts_kernel qcts_kernel_dequantize_int8_row_reduced_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_int8_row_reduced_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_affine_rows<qcts::avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_row_reduced", "avx512",
        "32 elements at a time; bound by writing the result");
