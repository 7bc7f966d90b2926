// x by the same rules as the weight in kernels/quantize/fp8_row_scalar.cc, with bounds where given
// (kernels/families/float8_scales.h).
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_activation_fp8_row_scalar =
    qcts::activation_whole<qcts_kernel_quantize_activation_fp8_row_scalar,
                           qcts::scalar::quantize_float8_problem>(
        "fp8_row:dyn_row,dyn_row_mslk", "scalar",
        "two passes a block: absolute maximum, then codes; bound by one division an element");
