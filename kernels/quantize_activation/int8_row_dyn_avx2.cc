// Rows of x to int8, symmetric or asymmetric: two passes a row (kernels/avx2_int8.h), the second in cache. At
// the size of activations bound by some 15 operations for eight elements.
#include "kernels/avx2_int8.h"
#include "kernels/entry.h"

namespace {

using namespace qcts::avx2;

void quantize_int8_dyn_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(qcts::out_plane(p, "qdata"));
  auto* scales = static_cast<char*>(qcts::out_plane(p, "scale"));
  auto* zero_points = static_cast<int8_t*>(qcts::out_plane(p, "zero_point"));
  const RowRecipe recipe = int8_row_recipe(p.x_dtype, p.activation);
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const RowScale chosen = row_scale(recipe, row, p.k);
    quantize_part(recipe, row, 0, p.k, chosen, qdata + m * p.k);
    std::memcpy(scales + 4 * m, &chosen.scale, 4);
    zero_points[m] = static_cast<int8_t>(chosen.zero_point);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx2 =
    qcts::activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx2, quantize_int8_dyn_rows>(
        "int8_row:dyn_row_sym,dyn_row_asym,dyn_row_sym_127", "avx2",
        "two passes a row, the second in cache; bound by rounding, eight elements at a time");
