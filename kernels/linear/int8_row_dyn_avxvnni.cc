// W8A8, rows of x to int8 at run time: kernels/vnni/int8_linear.h, kernels/vnni/dots.h.
#include "kernels/avxvnni/dots.h"

namespace {

using namespace qcts::vnni;
using Vector = qcts::avxvnni::Vector;

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_dyn_avxvnni = int8_linear_of<
    qcts_kernel_linear_int8_row_dyn_avxvnni, Vector, Int8Row, Dots<Vector>>(
    Int8Row::kScheme, "avxvnni",
    "bytes multiplied four at a time into exact integer sums, 6 rows by 16 columns in registers; bound by "
    "reading weights, then by the multiplications");
