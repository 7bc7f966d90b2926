// Codes of bfloat16 as kernels/avx512/float8_quantize.h has them, the rest as the AVX2 variant.
#include "kernels/avx512/float8_quantize.h"

const qcts_kernel qcts_kernel_quantize_fp8_avx512 = qcts::exact_entry(
    QCTS_OP_QUANTIZE, "fp8", "avx512",
    "two passes a block, the second in cache; bound by memory in bfloat16, else by one division for eight "
    "codes",
    {qcts::supports_problem<qcts_kernel_quantize_fp8_avx512>,
     qcts::run_checked<qcts_kernel_quantize_fp8_avx512,
                       qcts::avx2::quantize_float8_problem<qcts::avx512::WideFloat8Parts>>});
