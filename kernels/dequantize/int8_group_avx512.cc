// torchao 0.18 Int8Tensor with PerGroup(g). One byte in, two or four out: kernels/avx512/scaled.h.
#include "kernels/avx512/scaled.h"

const qcts_kernel qcts_kernel_dequantize_int8_group_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_int8_group_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_affine_groups<qcts::avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "int8_group", "avx512", "32 elements at a time; bound by writing the result");
