// Rows of x to int8: kernels/avx512/int8_activation.h.
#include "kernels/avx512/int8_activation.h"

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx512 =
    qcts::activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx512,
                          qcts::avx2::quantize_int8_dyn_rows<qcts::avx512::RowsToInt8>>(
        qcts::kInt8RowX, "avx512", "a row's range, unless the scale is given, then codes; bound by these");
