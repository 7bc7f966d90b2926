// torchao 0.18 IntxUnpackedToInt8Tensor: codes of one to eight bits, one a byte. One byte in, two or four
// out: kernels/avx512/scaled.h.
#include "kernels/avx512/scaled.h"

const qcts_kernel qcts_kernel_dequantize_intx_avx512 =
    qcts::exact_rows<qcts_kernel_dequantize_intx_avx512,
                     qcts::avx2::fenced<qcts::avx2::dequantize_affine_groups<qcts::avx512::WideIntegers>>>(
        QCTS_OP_DEQUANTIZE, "intx", "avx512", "32 elements at a time; bound by writing the result");
