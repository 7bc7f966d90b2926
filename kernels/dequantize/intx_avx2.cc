// torchao 0.18 IntxUnpackedToInt8Tensor: codes of one to eight bits, one a byte. One byte in, two or four
// out: kernels/avx2/scaled.h.
#include "kernels/avx2/scaled.h"

const qcts_kernel qcts_kernel_dequantize_intx_avx2 =
    qcts::exact_rows<qcts_kernel_dequantize_intx_avx2,
                     qcts::avx2::fenced<qcts::avx2::dequantize_affine_groups<qcts::avx2::Integers32>>>(
        QCTS_OP_DEQUANTIZE, "intx", "avx2", "eight elements at a time; bound by writing the result");
