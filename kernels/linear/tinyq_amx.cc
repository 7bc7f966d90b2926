// Layout: kernels/bf16/int8.h; limits: kernels/amx/bf16_linear.h.
#include "kernels/amx/bf16_linear.h"
#include "kernels/bf16/int8.h"

const qcts_kernel qcts_kernel_linear_tinyq_amx =
    qcts::bf16::linear_of<qcts_kernel_linear_tinyq_amx, qcts::bf16::Int8Row<qcts::TinyqRows>,
                          qcts::amx::ExactTiles>(
        "tinyq",
        "bytes made tiles of bfloat16 while others are multiplied for m <= 16, 512 k at a time "
        "above; bound by reading weights, then by tile multiplications");
