// x as fp8_row has it (kernels/quantize_activation/fp8_row_scalar.cc): the weight alone is sparse.
#include "kernels/scalar/blocks.h"

const qcts_kernel qcts_kernel_quantize_activation_fp8_sparse24_scalar =
    qcts::activation_whole<qcts_kernel_quantize_activation_fp8_sparse24_scalar,
                           qcts::scalar::quantize_float8_problem>(
        "fp8_sparse24:dyn_row,dyn_row_mslk", "scalar",
        "two passes a block: absolute maximum, then codes; bound by one division an element");
