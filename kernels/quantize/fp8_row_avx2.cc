// torchao 0.18 Float8Tensor.from_hp, a scale a row: the torch path (quant_primitives.py:
// _choose_scale_float8, _quantize_affine_float8). The scale has no floor: a block of zeros divides 0 by 0 and
// stores NaN codes, as the original does.
#include "kernels/avx2/float8_bands.h"

const qcts_kernel qcts_kernel_quantize_fp8_row_avx2 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "fp8_row", "avx2",
    "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for eight "
    "codes",
    {qcts::supports_problem<qcts_kernel_quantize_fp8_row_avx2>,
     qcts::run_checked<qcts_kernel_quantize_fp8_row_avx2,
                       qcts::avx2::quantize_float8_problem<qcts::avx2::Float8Parts>>});
