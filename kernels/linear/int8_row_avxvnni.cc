// Layout and limits: kernels/fixed/int8.h, kernels/avx2/word_dots.h; of float32 x kernels/avx2/int8_rows.h.
#include "kernels/avxvnni/fixed.h"

const qcts_kernel qcts_kernel_linear_int8_row_avxvnni =
    qcts::avx2::int8_rows_of<qcts_kernel_linear_int8_row_avxvnni, qcts::TorchaoRows, qcts::avxvnni::WordDots>(
        "int8_row", "avxvnni",
        "64 columns a block; codes widened to words times x in fixed point, by VPDPWSSD; bound by reading "
        "weights, then by the products; of float32 x codes become floats, for m > 4 in a panel");
