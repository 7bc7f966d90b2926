// Rows of x to int8, symmetric or asymmetric: its range, unless the scale is given, then
// codes, which finds the row in cache (kernels/avx2/int8.h). At
// the size of activations bound by some 15 operations for eight elements.
#include "kernels/avx2/int8.h"
#include "kernels/entry.h"

namespace {

using namespace qcts::avx2;

void quantize_int8_dyn_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(qcts::out_plane(p, "qdata"));
  RowRecipe recipe = int8_row_recipe(p);
  if (recipe.is_given) recipe.given = qcts::given_scale(p);
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const qcts::RowScale chosen = row_scale(recipe, row, p.k);
    quantize_part(recipe, row, 0, p.k, chosen, qdata + m * p.k);
    qcts::store_row_scale(p, m, chosen);
  }
}

}  // namespace

const qcts_kernel qcts_kernel_quantize_activation_int8_row_dyn_avx2 =
    qcts::activation_rows<qcts_kernel_quantize_activation_int8_row_dyn_avx2, quantize_int8_dyn_rows>(
        qcts::kInt8RowX, "avx2",
        "a row's range, unless the scale is given, then codes; bound by rounding, eight elements at a time");
