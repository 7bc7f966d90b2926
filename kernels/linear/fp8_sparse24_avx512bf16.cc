// Layout and limits: kernels/bf16/fp8.h.
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/fp8.h"

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512bf16 =
    qcts::bf16::linear_of<qcts_kernel_linear_fp8_sparse24_avx512bf16,
                          qcts::bf16::Fp8Sparse24<qcts::bf16::ShiftedE4m3>, qcts::avx512bf16::Pairs>(
        "fp8_sparse24",
        "expanded at load, then as fp8_row; bound by reading weights, then by the multiplications");
