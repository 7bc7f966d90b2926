// Layout: kernels/bf16/fp8.h; limits: kernels/amx/bf16_linear.h.
#include "kernels/amx/bf16_linear.h"
#include "kernels/bf16/fp8.h"

const qcts_kernel qcts_kernel_linear_fp8_sparse24_amx =
    qcts::bf16::linear_of<qcts_kernel_linear_fp8_sparse24_amx,
                          qcts::bf16::Fp8Sparse24<qcts::bf16::ShiftedE4m3>, qcts::amx::Bfloat16Tiles>(
        "fp8_sparse24",
        "bytes, expanded at load, made tiles of bfloat16 while others are multiplied for m <= 16, "
        "512 k at a time above; bound by reading weights, then by tile multiplications");
