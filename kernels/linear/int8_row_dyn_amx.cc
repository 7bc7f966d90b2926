// W8A8, rows of x to int8 at run time: kernels/vnni/int8_linear.h, kernels/amx/tiles.h.
#include "kernels/amx/int8_row.h"

namespace {

using namespace qcts::vnni;

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_dyn_amx =
    int8_linear_of<qcts_kernel_linear_int8_row_dyn_amx, qcts::avx512::Lanes, Int8Row, qcts::amx::Int8Tiles>(
        Int8Row::kScheme, "amx",
        "tiles of bytes into exact integer sums, 512 k of 32 columns kept in L1 while rows pass; bound by "
        "reading "
        "weights up to m = 16, then by the tile multiplications");
