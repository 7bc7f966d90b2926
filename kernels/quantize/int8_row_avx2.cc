// torchao 0.18 Int8Tensor.from_hp per row: kernels/avx2/int8_quantize.h.
#include "kernels/avx2/int8_quantize.h"

const qcts_kernel qcts_kernel_quantize_int8_row_avx2 =
    qcts::exact_rows<qcts_kernel_quantize_int8_row_avx2,
                     qcts::avx2::fenced<qcts::avx2::quantize_int8_rows<qcts::avx2::Int8Codes>>>(
        QCTS_OP_QUANTIZE, "int8_row", "avx2", "two passes a row, the second in cache; bound by memory");
