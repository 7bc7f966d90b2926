// Layout and limits: kernels/avx512vbmi/e4m3.h, kernels/bf16/fp8.h.
#include "kernels/avx512vbmi/e4m3.h"
#include "kernels/bf16/fp8.h"

const qcts_kernel qcts_kernel_linear_fp8_sparse24_avx512vbmi =
    qcts::bf16::linear_of<qcts_kernel_linear_fp8_sparse24_avx512vbmi,
                          qcts::bf16::Fp8Sparse24<qcts::avx512vbmi::TableE4m3>, qcts::avx512vbmi::Pairs>(
        "fp8_sparse24",
        "expanded at load, then as fp8_row by tables of bytes; bound by reading weights, then by the "
        "multiplications");
