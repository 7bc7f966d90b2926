// Layout: kernels/bf16/nvfp4.h; limits: kernels/amx/bf16_linear.h.
#include "kernels/amx/bf16_linear.h"
#include "kernels/bf16/nvfp4.h"

const qcts_kernel qcts_kernel_linear_nvfp4_amx =
    qcts::bf16::linear_of<qcts_kernel_linear_nvfp4_amx, qcts::bf16::Nvfp4, qcts::amx::Bfloat16Tiles>(
        "nvfp4",
        "elements made tiles of bfloat16 while others are multiplied for m <= 16, 512 k at a time "
        "above; bound by reading weights, then by the scales of 16 elements");
