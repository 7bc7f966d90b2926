// Layout and limits: kernels/bf16/int8.h; 7 to 12 rows are a tall tile's, kernels/avx512bf16/tall.h.
#include "kernels/avx512bf16/tall.h"
#include "kernels/bf16/int8.h"

namespace {

using namespace qcts::avx512bf16;

}  // namespace

const qcts_kernel qcts_kernel_linear_int8_row_avx512bf16 =
    linear_of<qcts_kernel_linear_int8_row_avx512bf16, Int8Row<qcts::TorchaoRows>, TallPairs>(
        "int8_row",
        "64 columns a block, made bfloat16 in registers for m <= 12, to a panel above; bound by reading "
        "weights, then by the multiplications");
