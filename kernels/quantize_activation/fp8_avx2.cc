// x by the same rules as the weight in kernels/quantize/fp8_avx2.cc, with bounds where given
// (kernels/families/float8_scales.h).
#include "kernels/avx2/float8_bands.h"

const qcts_kernel qcts_kernel_quantize_activation_fp8_avx2 =
    qcts::activation_whole<qcts_kernel_quantize_activation_fp8_avx2,
                           qcts::avx2::quantize_float8_problem<qcts::avx2::Float8Parts>>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "avx2",
        "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for "
        "eight codes");
