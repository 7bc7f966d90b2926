// Layout and limits: kernels/avx512vbmi/e4m3.h, kernels/bf16/fp8.h.
#include "kernels/avx512vbmi/e4m3.h"
#include "kernels/bf16/fp8.h"

const qcts_kernel qcts_kernel_linear_fp8_row_avx512vbmi =
    qcts::bf16::linear_of<qcts_kernel_linear_fp8_row_avx512vbmi,
                          qcts::bf16::Fp8Row<qcts::avx512vbmi::TableE4m3>, qcts::avx512vbmi::Pairs>(
        "fp8_row",
        "64 columns a block, made bfloat16 by tables of bytes, in registers for m <= 6, to a panel above; "
        "bound by reading weights, then by the multiplications");
