// Rows of x to int8, symmetric or asymmetric, for the AVX2 and AVX-512 variants of quantize_activation and
// for nothing else: every function has internal linkage. A row's range, unless the scale is given, then
// codes, which finds the row in cache (kernels/avx2/int8.h).
#pragma once

#include "kernels/avx2/int8.h"
#include "kernels/entry.h"

namespace qcts::avx2 {
namespace {

struct RowsToInt8 {
  static Range range_of(uint32_t dtype, const char* row, int64_t k_count) {
    return avx2::range_of(dtype, row, k_count);
  }
  static int32_t quantize_part(const RowRecipe& recipe, const char* row, int64_t first_k, int64_t count,
                               RowScale chosen, int8_t* codes) {
    return avx2::quantize_part(recipe, row, first_k, count, chosen, codes);
  }
};

// Rows: the two passes, which wider vectors make in another way.
template <class Rows>
void quantize_int8_dyn_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(out_plane(p, "qdata"));
  RowRecipe recipe = int8_row_recipe(p);
  if (recipe.is_given) recipe.given = given_scale(p);
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const RowScale chosen =
        recipe.is_given ? recipe.given : scale_of(recipe, Rows::range_of(recipe.dtype, row, p.k));
    Rows::quantize_part(recipe, row, 0, p.k, chosen, qdata + m * p.k);
    store_row_scale(p, m, chosen);
  }
}

}  // namespace
}  // namespace qcts::avx2
