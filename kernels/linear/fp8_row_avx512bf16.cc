// Layout and limits: kernels/bf16/fp8.h.
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/fp8.h"

const qcts_kernel qcts_kernel_linear_fp8_row_avx512bf16 =
    qcts::bf16::linear_of<qcts_kernel_linear_fp8_row_avx512bf16, qcts::bf16::Fp8Row<qcts::bf16::ShiftedE4m3>,
                          qcts::avx512bf16::Pairs>(
        "fp8_row",
        "64 columns a block, made bfloat16 in registers for m <= 6, to a panel above; bound by reading "
        "weights, then by the multiplications");
