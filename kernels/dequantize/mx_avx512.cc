// As mx_scalar.cc: kernels/avx512/mx_dequantize.h.
#include "kernels/avx512/mx_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_mx_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_mx_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_mx<qcts::avx512::MxWords>>>(
        QCTS_OP_DEQUANTIZE, "mx", "avx512",
        "a table or an exponent a block, or eight elements at a time; bound by writing the result");
