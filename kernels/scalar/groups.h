// SPDX-License-Identifier: BSD-3-Clause
// Quantizes groups or tensors of intx and int8, or rows of x, one element at a time, for the scalar variants.
#pragma once

#include <math.h>

#include "kernels/families/affine_groups.h"
#include "kernels/families/elements.h"
#include "kernels/families/entry.h"
#include "kernels/scalar/blocks.h"

namespace qcts::scalar {
namespace {

[[maybe_unused]] AffineGroup group_of_elements(const AffineRecipe& recipe, const char* row, int64_t first,
                                               int64_t last) {
  float low = 0, high = 0;
  for (int64_t k = first; k < last; ++k) {
    const float w = load(recipe.dtype, row, k);
    if (w != w) return affine_group(recipe, w, w);
    low = w < low ? w : low;
    high = w > high ? w : high;
  }
  return affine_group(recipe, low, high);
}

[[maybe_unused]] int8_t affine_code(const AffineRecipe& recipe, const AffineGroup& group, float w) {
  const float steps = nearbyintf(round_to(recipe.common, w * group.reciprocal));
  const float code = round_to(recipe.common, steps + group.zero_point);
  if (code != code) return 0;
  return static_cast<int8_t>(code < recipe.code_min   ? recipe.code_min
                             : code > recipe.code_max ? recipe.code_max
                                                      : code);
}

template <AffineRecipeOf kRecipe>
void quantize_affine_groups(const qcts_problem& p, int64_t first, int64_t last) {
  const AffineTask task = affine_task(p, kRecipe(p));
  const AffineRecipe& recipe = task.recipe;
  for (int64_t n = first; n < last; ++n) {
    const char* row = task.data + n * task.ld_bytes;
    for (int64_t start = 0; start < task.k; start += task.group) {
      const AffineGroup group = group_of_elements(recipe, row, start, start + task.group);
      write_parameters(task, (n * task.k + start) / task.group, group);
      for (int64_t k = start; k < start + task.group; ++k)
        task.codes[n * task.k + k] = affine_code(recipe, group, load(recipe.dtype, row, k));
    }
  }
}

[[maybe_unused]] void quantize_affine_rows(const AffineTask& task, const AffineGroup& group, int64_t first,
                                           int64_t last) {
  for (int64_t n = first; n < last; ++n) {
    const char* row = task.data + n * task.ld_bytes;
    for (int64_t k = 0; k < task.k; ++k)
      task.codes[n * task.k + k] = affine_code(task.recipe, group, load(task.recipe.dtype, row, k));
  }
}
[[maybe_unused]] void quantize_int8_tensor(const qcts_problem* p) {
  quantize_affine_tensor(*p, int8_recipe(*p), largest_of, quantize_affine_rows);
}

}  // namespace
}  // namespace qcts::scalar
