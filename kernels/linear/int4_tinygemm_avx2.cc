// Layout and limits: kernels/fixed/int4.h, kernels/avx2/fixed_dots.h; of float32 x kernels/avx2/int4.h.
#include "kernels/avx2/int4.h"

#include "kernels/avx2/fixed_dots.h"

const qcts_kernel qcts_kernel_linear_int4_tinygemm_avx2 = qcts::avx2::int4_linear_of<
    qcts_kernel_linear_int4_tinygemm_avx2, qcts::TinygemmPlanes, qcts::avx2::FixedNibbleDots>(
    "int4_tinygemm", "avx2",
    "64 columns a block; nibbles times two bytes of x in fixed point, bound by the products; of float32 x "
    "nibbles are looked up, for m > 4 to a panel");
