// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sm80/dequantize.h"
#include "kernels/sm80/int8.h"

using namespace qcts;

const qcts_kernel qcts_kernel_dequantize_int8_row_sm80 =
    exact_launched<qcts_kernel_dequantize_int8_row_sm80, sm80::dequantize<sm80::Int8RowPlanes>>(
        QCTS_OP_DEQUANTIZE, "int8_row", "sm80", "a warp a tile of 512, 16 bytes a lane; bound by writing y");
