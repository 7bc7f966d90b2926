// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/scalar/blocks.h"
#include "kernels/scalar/shuffle.h"

using namespace qcts;

// Unpacks codes from MSLK's preshuffled order (kernels/scalar/shuffle.h).
const qcts_kernel qcts_kernel_unpack_int4_plain_scalar =
    exact_entry(QCTS_OP_UNPACK, "int4_plain", "scalar",
                "one code at a time by index map; bound by the scattered accesses",
                {supports_problem<qcts_kernel_unpack_int4_plain_scalar>,
                 run_checked<qcts_kernel_unpack_int4_plain_scalar,
                             scalar::move_nibbles<scalar::shuffled, scalar::row_major>>});

const qcts_kernel qcts_kernel_unpack_mx_scalar =
    exact_entry(QCTS_OP_UNPACK, "mx", "scalar", "a copy of the codes; bound by memory",
                {supports_problem<qcts_kernel_unpack_mx_scalar>,
                 run_checked<qcts_kernel_unpack_mx_scalar, scalar::unpack_block_scales<32>>});

const qcts_kernel qcts_kernel_unpack_nvfp4_scalar =
    exact_entry(QCTS_OP_UNPACK, "nvfp4", "scalar", "a copy of the codes; bound by memory",
                {supports_problem<qcts_kernel_unpack_nvfp4_scalar>,
                 run_checked<qcts_kernel_unpack_nvfp4_scalar, scalar::unpack_block_scales<16>>});
