// As mx_scalar.cc: kernels/avx2/mx_dequantize.h.
#include "kernels/avx2/mx_dequantize.h"

const qcts_kernel qcts_kernel_dequantize_mx_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_mx_avx2,
                     qcts::avx2::fenced<qcts::avx2::dequantize_mx<qcts::avx2::MxBlocks>>>(
        QCTS_OP_DEQUANTIZE, "mx", "avx2",
        "a table or an exponent a block, or eight elements at a time; bound by writing the result");
