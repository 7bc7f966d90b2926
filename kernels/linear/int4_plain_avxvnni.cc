// Layout and limits: kernels/fixed/int4.h, kernels/vnni/fixed_dots.h; of float32 x kernels/avx2/int4.h.
#include "kernels/avxvnni/fixed.h"

const qcts_kernel qcts_kernel_linear_int4_plain_avxvnni =
    qcts::avx2::int4_linear_of<qcts_kernel_linear_int4_plain_avxvnni, qcts::PlainPlanes,
                               qcts::avxvnni::NibbleDots>(
        "int4_plain", "avxvnni",
        "64 columns a block; nibbles times two bytes of x in fixed point, by VPDPBUSD; bound by reading "
        "weights, then by the products; of float32 x nibbles are looked up, for m > 4 to a panel");
