// SPDX-License-Identifier: BSD-3-Clause
// Quantizes rows of x to int8, symmetric or asymmetric,
// for the AVX2 and AVX-512 variants of quantize_activation.
// The first pass finds the range of the row, unless the scale is given.
// The second pass computes codes from the row, which is now in cache (kernels/avx2/int8.h).
#pragma once

#include "kernels/avx2/int8.h"
#include "kernels/families/entry.h"

namespace qcts::avx2 {
namespace {

// Rows is RowsToInt8, with either range of codes, or a similar struct of the AVX-512 variant.
template <class Rows>
void quantize_int8_dyn_rows(const qcts_problem& p, int64_t first, int64_t last) {
  auto* qdata = static_cast<int8_t*>(out_plane(p, "qdata"));
  RowRecipe recipe = int8_row_recipe(p);
  if (recipe.is_given) recipe.given = given_scale(p);
  for (int64_t m = first; m < last; ++m) {
    const char* row = static_cast<const char*>(p.x) + m * p.ldx_bytes;
    const RowScale chosen =
        recipe.is_given ? recipe.given
                        : scale_of<typename Rows::Codes>(recipe, Rows::range_of(recipe.dtype, row, p.k));
    Rows::quantize_part(recipe, row, 0, p.k, chosen, qdata + m * p.k);
    store_row_scale(p, m, chosen);
  }
}

}  // namespace
}  // namespace qcts::avx2
