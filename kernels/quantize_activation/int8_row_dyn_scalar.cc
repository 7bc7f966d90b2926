// Rows of x to int8, symmetric or asymmetric: two passes a row, one element at a time.
#include "kernels/entry.h"
#include "kernels/scalar_int8.h"

namespace {

void quantize_int8_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(qcts::out_plane(p, "qdata"));
  auto* scales = static_cast<char*>(qcts::out_plane(p, "scale"));
  auto* zero_points = static_cast<int8_t*>(qcts::out_plane(p, "zero_point"));
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const qcts::scalar::RowScale chosen =
        qcts::scalar::quantize_int8_row(p.x_dtype, p.activation, row, p.k, qdata + m * p.k);
    std::memcpy(scales + 4 * m, &chosen.scale, 4);
    zero_points[m] = static_cast<int8_t>(chosen.zero_point);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_scalar =
    qcts::activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_scalar, quantize_int8_rows>(
        "int8_row:dyn_row_sym,dyn_row_asym,dyn_row_sym_127", "scalar",
        "two passes a row: its range, then codes; bound by float rounding, one element at a time");
