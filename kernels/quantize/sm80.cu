// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sm80/int8.h"
#include "kernels/sm80/quantize.h"

using namespace qcts;

const qcts_kernel qcts_kernel_quantize_int8_row_sm80 =
    exact_launched<qcts_kernel_quantize_int8_row_sm80, sm80::quantize<sm80::Int8RowQuantizer>>(
        QCTS_OP_QUANTIZE, "int8_row", "sm80", "a block a row, 16 bytes a lane; bound by reading x");
