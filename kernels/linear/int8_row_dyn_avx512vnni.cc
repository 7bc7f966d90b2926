// W8A8, rows of x to int8 at run time: kernels/vnni/int8_linear.h, kernels/vnni/dots.h.
#include "kernels/avx512vnni/dots.h"

namespace {

using namespace qcts::vnni;
using Vector = qcts::avx512vnni::Vector;

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_dyn_avx512vnni = int8_linear_of<
    qcts_kernel_linear_int8_row_dyn_avx512vnni, Vector, Int8Row, Dots<Vector>>(
    Int8Row::kScheme, "avx512vnni",
    "bytes multiplied four at a time into exact integer sums, 6 rows by 64 columns in registers; bound by "
    "reading weights up to m = 16, then by the multiplications");
