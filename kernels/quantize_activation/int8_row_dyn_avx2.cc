// Rows of x to int8: kernels/avx2/int8_activation.h.
#include "kernels/avx2/int8_activation.h"

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx2 =
    qcts::activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx2,
                          qcts::avx2::quantize_int8_dyn_rows<qcts::avx2::RowsToInt8>>(
        qcts::kInt8RowX, "avx2", "a row's range, unless the scale is given, then codes; bound by these");
