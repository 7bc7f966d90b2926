// Layout and limits: kernels/bf16/int4.h.
#include "kernels/avx512bf16/linear.h"
#include "kernels/bf16/int4.h"

const qcts_kernel qcts_kernel_linear_int4_plain_avx512bf16 =
    qcts::bf16::linear_of<qcts_kernel_linear_int4_plain_avx512bf16, qcts::bf16::Int4Linear<qcts::PlainPlanes>,
                          qcts::avx512bf16::Pairs>(
        "int4_plain",
        "64 columns a block, nibbles looked up in registers for m <= 6, to a panel of bfloat16 above; bound "
        "by reading weights, then by the multiplications");
