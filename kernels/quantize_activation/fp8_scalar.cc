// x by the same rules as the weight in kernels/quantize/fp8_scalar.cc, with bounds where given
// (kernels/families/float8_scales.h).
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_activation_fp8_scalar =
    qcts::activation_whole<qcts_kernel_quantize_activation_fp8_scalar, qcts::scalar::quantize_float8_problem>(
        "fp8:dyn_row,dyn_tensor,dyn_block128,static_tensor,static_tensor_out", "scalar",
        "two passes a block: absolute maximum, then codes; bound by one division an element");
