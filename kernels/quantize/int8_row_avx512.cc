// torchao 0.18 Int8Tensor.from_hp per row: kernels/avx512/int8_quantize.h.
#include "kernels/avx512/int8_quantize.h"

const qcts_kernel qcts_kernel_quantize_int8_row_avx512 =
    qcts::exact_rows<qcts_kernel_quantize_int8_row_avx512,
                     qcts::avx2::fenced<qcts::avx2::quantize_int8_rows<qcts::avx512::WideInt8Codes>>>(
        QCTS_OP_QUANTIZE, "int8_row", "avx512", "two passes a row, the second in cache; bound by memory");
