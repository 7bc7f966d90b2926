// int8_tensor with the codes of reduce_range=True. One byte in, two or four out: kernels/avx2/scaled.h.
#include "kernels/avx2/scaled.h"

const qcts_kernel qcts_kernel_dequantize_int8_tensor_reduced_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_int8_tensor_reduced_avx2,
                     qcts::avx2::fenced<qcts::avx2::dequantize_affine_tensor<qcts::avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "int8_tensor_reduced", "avx2",
        "eight elements at a time; bound by writing the result");
