// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx512/quantize/int4_plain_quantize.h"

using namespace qcts;

// In a separate file: together with the headers of quantize/avx512.cc, GCC 12 compiles the float16 loop
// differently.
const qcts_kernel qcts_kernel_quantize_int4_plain_avx512 =
    exact_rows<qcts_kernel_quantize_int4_plain_avx512, avx2::quantize_int4_plain<avx512::WidePlainParts>>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx512",
        "ranges and parameters of 32 groups, then two codes of a lane become a byte; bound by the "
        "multiplications");
