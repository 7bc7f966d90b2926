// 8da4w and its wider and narrower siblings: kernels/vnni/int8_linear.h, kernels/vnni/dots.h.
#include "kernels/avxvnni/dots.h"

const qcts_kernel qcts_kernel_linear_intx_dyn_avxvnni =
    qcts::vnni::intx_linear_of<qcts_kernel_linear_intx_dyn_avxvnni, qcts::avxvnni::Vector,
                               qcts::vnni::Dots<qcts::avxvnni::Vector>>(
        "avxvnni",
        "nibbles masked to bytes in registers for m <= 6, to a panel above, multiplied four at a time into "
        "exact integer sums; bound by reading weights, then by the scales of small groups");
