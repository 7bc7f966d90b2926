// Layout and limits: kernels/fixed/int8.h, kernels/avx2/word_dots.h; of float32 x kernels/avx2/int8_rows.h.
#include "kernels/avx2/int8_rows.h"

#include "kernels/avx2/word_dots.h"

const qcts_kernel qcts_kernel_linear_int8_row_avx2 = qcts::avx2::int8_rows_of<
    qcts_kernel_linear_int8_row_avx2, qcts::TorchaoRows, qcts::avx2::WordDots>(
    "int8_row", "avx2",
    "64 columns a block; codes widened to words times x in fixed point, bound by reading weights, then by "
    "integer multiply-adds; of float32 x codes become floats, for m > 4 in a panel");
