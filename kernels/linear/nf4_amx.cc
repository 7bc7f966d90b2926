// Layout: kernels/bf16/nf4.h; limits: kernels/amx/bf16_linear.h.
#include "kernels/amx/bf16_linear.h"
#include "kernels/bf16/nf4.h"

const qcts_kernel qcts_kernel_linear_nf4_amx =
    qcts::bf16::nf4_linear_of<qcts_kernel_linear_nf4_amx, qcts::amx::ExactTiles>(
        "nibbles made tiles of bfloat16 while others are multiplied for m <= 16, 512 k at a time "
        "above; bound by reading weights, then by tile multiplications and scales");
