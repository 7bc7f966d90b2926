// torchao 0.18 nf4_tensor.py: convert_to_norm_float_weight makes x / scaler the code of the nearest value,
// the lower of two; double_quantize_scalers makes the scalers, less their mean, int8 codes, 256 with a factor
// of their own. Every step is rounded to the weight's dtype. A block of zeros divides 0 by 0 and stores code
// 0, as the original does.
#include "kernels/scalar/nf4.h"

const qcts_kernel qcts_kernel_quantize_nf4_scalar = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "nf4", "scalar", "two passes a block; bound by 16 rounded distances an element",
    {qcts::supports_problem<qcts_kernel_quantize_nf4_scalar>,
     qcts::run_checked<qcts_kernel_quantize_nf4_scalar, qcts::scalar::quantize_nf4_problem>,
     qcts::nf4_workspace_bytes});
