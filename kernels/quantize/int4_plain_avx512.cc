// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx512/quantize/int4_plain_quantize.h"

using namespace qcts;

// In a file of its own: beside the headers of quantize/avx512.cc GCC 12 lays out the float16 loop in another
// way.
const qcts_kernel qcts_kernel_quantize_int4_plain_avx512 =
    exact_rows<qcts_kernel_quantize_int4_plain_avx512, avx2::quantize_int4_plain<avx512::WidePlainParts>>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx512",
        "two codes a lane become a byte, ranges and parameters of 32 groups before; bound by the "
        "multiplications");
