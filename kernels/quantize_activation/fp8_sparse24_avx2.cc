// x as fp8_row has it (kernels/quantize_activation/fp8_row_avx2.cc): the weight alone is sparse.
#include "kernels/avx2/float8_bands.h"

const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_avx2 =
    qcts::activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_avx2,
                           qcts::avx2::quantize_float8_problem<qcts::avx2::Float8Parts>>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "avx2",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");
