// Layout: kernels/bf16/mx.h; limits: kernels/amx/bf16_linear.h.
#include "kernels/bf16/mx.h"
#include "kernels/amx/bf16_linear.h"

const qcts_kernel qcts_kernel_linear_mx_amx =
    qcts::bf16::mx_linear_of<qcts_kernel_linear_mx_amx, qcts::amx::Bfloat16Tiles>(
        "elements made tiles of bfloat16 while others are multiplied for m <= 16, 512 k at a time "
        "above; bound by reading weights, then by the scales of 32 elements");
