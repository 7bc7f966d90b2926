// Codes out of MSLK's preshuffled order (kernels/scalar/shuffle.h).
#include "kernels/scalar/shuffle.h"

using namespace qcts::scalar;

const qcts_kernel qcts_kernel_unpack_int4_plain_scalar = qcts::exact_entry(
    QCTS_OP_UNPACK, "int4_plain", "scalar",
    "one code at a time by index map; bound by the scattered accesses",
    {qcts::supports_problem<qcts_kernel_unpack_int4_plain_scalar>,
     qcts::run_checked<qcts_kernel_unpack_int4_plain_scalar, move_nibbles<shuffled, row_major>>});
