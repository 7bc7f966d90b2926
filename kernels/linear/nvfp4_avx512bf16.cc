// Layout and limits: kernels/bf16/nvfp4.h.
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/nvfp4.h"

const qcts_kernel qcts_kernel_linear_nvfp4_avx512bf16 =
    qcts::bf16::linear_of<qcts_kernel_linear_nvfp4_avx512bf16, qcts::bf16::Nvfp4, qcts::avx512bf16::Pairs>(
        "nvfp4",
        "64 columns a block, elements looked up in registers for m <= 6, to a panel of bfloat16 above; bound "
        "by decoding, then by the multiplications and the scales of 16 elements");
