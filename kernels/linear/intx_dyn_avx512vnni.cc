// 8da4w and its wider and narrower siblings: kernels/vnni/int8_linear.h, kernels/vnni/dots.h. A load, a shift
// and two masks make 128 weights of 64 bytes.
#include "kernels/avx512vnni/dots.h"

const qcts_kernel qcts_kernel_linear_intx_dyn_avx512vnni =
    qcts::vnni::intx_linear_of<qcts_kernel_linear_intx_dyn_avx512vnni, qcts::avx512vnni::Vector,
                               qcts::vnni::Dots<qcts::avx512vnni::Vector>>(
        "avx512vnni",
        "nibbles masked to bytes in registers for m <= 6, to a panel above, multiplied four at a time into "
        "exact integer sums; bound by reading weights, then by the scales of small groups");
