// Codes of bfloat16 as kernels/avx512/int4_plain_quantize.h has them, the rest as the AVX2 variant.
#include "kernels/avx512/int4_plain_quantize.h"

const qcts_kernel qcts_kernel_quantize_int4_plain_avx512 =
    qcts::exact_rows<qcts_kernel_quantize_int4_plain_avx512,
                     qcts::avx2::quantize_int4_plain<qcts::avx512::WidePlainParts>>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx512",
        "two codes a lane become a byte, ranges and parameters of 32 groups before; bound by the "
        "multiplications");
