// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/avx2/quantize/int4_plain_quantize.h"

using namespace qcts;

// In a separate file: together with the headers of quantize/avx2.cc, GCC 12 compiles the float16 loop
// differently.
const qcts_kernel qcts_kernel_quantize_int4_plain_avx2 =
    exact_rows<qcts_kernel_quantize_int4_plain_avx2, avx2::quantize_int4_plain<avx2::PlainParts>>(
        QCTS_OP_QUANTIZE, "int4_plain", "avx2",
        "ranges, parameters and codes in three passes over 32 groups; bound by an operation per element");
