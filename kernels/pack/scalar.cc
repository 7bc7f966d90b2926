// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scalar/blocks.h"
#include "kernels/scalar/shuffle.h"

using namespace qcts;

// Packs codes into MSLK's preshuffled order (kernels/scalar/shuffle.h).
const qcts_kernel qcts_kernel_pack_int4_plain_scalar = exact_entry(
    QCTS_OP_PACK, "int4_plain", "scalar", "one code at a time by index map; bound by the scattered accesses",
    {supports_problem<qcts_kernel_pack_int4_plain_scalar>,
     run_checked<qcts_kernel_pack_int4_plain_scalar,
                 scalar::move_nibbles<scalar::row_major, scalar::shuffled>>});

const qcts_kernel qcts_kernel_pack_mx_scalar =
    exact_entry(QCTS_OP_PACK, "mx", "scalar", "a copy of the codes; bound by memory",
                {supports_problem<qcts_kernel_pack_mx_scalar>,
                 run_checked<qcts_kernel_pack_mx_scalar, scalar::pack_block_scales<32>>});

const qcts_kernel qcts_kernel_pack_nvfp4_scalar =
    exact_entry(QCTS_OP_PACK, "nvfp4", "scalar", "a copy of the codes; bound by memory",
                {supports_problem<qcts_kernel_pack_nvfp4_scalar>,
                 run_checked<qcts_kernel_pack_nvfp4_scalar, scalar::pack_block_scales<16>>});
