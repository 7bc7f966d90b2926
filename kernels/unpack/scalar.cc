#include "kernels/scalar/shuffle.h"

using namespace qcts;

// Codes out of MSLK's preshuffled order (kernels/scalar/shuffle.h).
const qcts_kernel qcts_kernel_unpack_int4_plain_scalar =
    exact_entry(QCTS_OP_UNPACK, "int4_plain", "scalar",
                "one code at a time by index map; bound by the scattered accesses",
                {supports_problem<qcts_kernel_unpack_int4_plain_scalar>,
                 run_checked<qcts_kernel_unpack_int4_plain_scalar,
                             scalar::move_nibbles<scalar::shuffled, scalar::row_major>>});
