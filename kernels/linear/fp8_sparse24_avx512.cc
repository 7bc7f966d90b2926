// Layout and limits: kernels/avx512/fp8.h.
#include "kernels/avx512/fp8.h"

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512 =
    qcts::avx512::linear_of<qcts_kernel_linear_fp8_sparse24_avx512, qcts::avx512::Fp8Sparse24>(
        "fp8_sparse24", "expanded at load, then as fp8_row; bound by reading weights, then by fma");
