// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/sm80/pack.h"

using namespace qcts;

const qcts_kernel qcts_kernel_unpack_int4_tinygemm_sm80 =
    sm80::tinygemm_moved<qcts_kernel_unpack_int4_tinygemm_sm80, sm80::move_tinygemm<false>>(
        QCTS_OP_UNPACK, "a warp per tile, 16 bytes per lane on both sides; bound by memory");
const qcts_kernel qcts_kernel_unpack_int4_plain_sm80 =
    exact_launched<qcts_kernel_unpack_int4_plain_sm80, sm80::move_int4_plain<false>>(
        QCTS_OP_UNPACK, "int4_plain", "sm80",
        "a warp per four tiles, 16 bytes per lane on both sides; bound by memory");
const qcts_kernel qcts_kernel_unpack_mx_sm80 =
    exact_launched<qcts_kernel_unpack_mx_sm80, sm80::move_block_scales<false, 32>>(
        QCTS_OP_UNPACK, "mx", "sm80",
        "a block per 128 rows of 32 scales, and a copy of the codes; bound by memory");
const qcts_kernel qcts_kernel_unpack_nvfp4_sm80 =
    exact_launched<qcts_kernel_unpack_nvfp4_sm80, sm80::move_block_scales<false, 16>>(
        QCTS_OP_UNPACK, "nvfp4", "sm80",
        "a block per 128 rows of 32 scales, and a copy of the codes; bound by memory");
