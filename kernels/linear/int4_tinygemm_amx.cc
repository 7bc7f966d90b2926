// Layout: kernels/bf16/int4.h; limits: kernels/amx/bf16_linear.h.
#include "kernels/amx/bf16_linear.h"
#include "kernels/bf16/int4.h"

const qcts_kernel qcts_kernel_linear_int4_tinygemm_amx =
    qcts::bf16::linear_of<qcts_kernel_linear_int4_tinygemm_amx, qcts::bf16::Int4Linear<qcts::TinygemmPlanes>,
                          qcts::amx::Bfloat16Tiles>(
        "int4_tinygemm",
        "nibbles made tiles of bfloat16 while others are multiplied for m <= 16, 512 k at a time "
        "above; bound by reading weights, then by tile multiplications and scales");
