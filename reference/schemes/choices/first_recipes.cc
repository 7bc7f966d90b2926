// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/choices/first_recipes.h"

#include <algorithm>

#include "reference/numerics/affine.h"
#include "reference/numerics/float8.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// Calls visit(block, elements, first index in the weight) for each block of a scheme with a scale for each
// group or row, and once for a scheme with one scale.
template <typename Visit>
void for_each_block(const Scheme& scheme, const Matrix& weight, const Visit& visit) {
  const std::vector<float> values = load_floats(weight.dtype, weight.bytes);
  const int64_t length = scheme.params().group_rows == 0 ? weight.rows * weight.cols
                         : scheme.group()                ? scheme.group()
                                                         : weight.cols;
  for (int64_t first = 0; first < weight.rows * weight.cols; first += length)
    visit(first / length, std::span(values).subspan(first, length), first);
}

Planes intx_planes(const Scheme& scheme, const Matrix& weight, double min_scale) {
  const SchemeParams& params = scheme.params();
  const AffineRecipe recipe = {.mapping = params.mapping,
                               .code_min = params.code_min,
                               .code_max = params.code_max,
                               .min_scale = min_scale,
                               .input = weight.dtype,
                               .scale = params.scale.value_or(weight.dtype)};
  Planes planes = make_planes(scheme.plane_specs({weight.dtype, weight.rows, weight.cols}));
  for_each_block(scheme, weight, [&](int64_t block, std::span<const float> elements, int64_t first) {
    const AffineParameters chosen = choose_affine(recipe, elements);
    store_float(recipe.scale, planes[1].bytes, block, chosen.scale);
    planes[2].bytes[block] = static_cast<std::byte>(chosen.zero_point);
    const AffineQuantizer code_of(recipe, chosen);
    for (const float w : elements) planes[0].bytes[first++] = static_cast<std::byte>(code_of(w));
  });
  return planes;
}

Planes float8_planes(const Scheme& scheme, const Matrix& weight, DType common) {
  const DType code = *scheme.params().element;
  Planes planes = make_planes(scheme.plane_specs({weight.dtype, weight.rows, weight.cols}));
  for_each_block(scheme, weight, [&](int64_t block, std::span<const float> elements, int64_t first) {
    const float scale = float8_scale_at_least(weight.dtype, code, largest_magnitude(elements));
    store_float(DType::float32, planes[1].bytes, block, scale);
    for (const float w : elements)
      planes[0].bytes[first++] = static_cast<std::byte>(float8_code_by_reciprocal_in(common, code, w, scale));
  });
  return planes;
}

}  // namespace

Planes quantize_by(WeightRecipe recipe, const Scheme& scheme, const Matrix& weight, Layout layout) {
  switch (recipe) {
    case WeightRecipe::current:
      break;
    case WeightRecipe::least_scale_2_23:
      return intx_planes(scheme, weight, 0x1p-23);
    case WeightRecipe::least_scale_eps:
      return intx_planes(scheme, weight, 2 * float_format(weight.dtype).unit_roundoff);
    case WeightRecipe::reciprocal:
      return float8_planes(scheme, weight, DType::float32);
    case WeightRecipe::narrow_reciprocal:
      return float8_planes(scheme, weight, weight.dtype);
  }
  return scheme.quantize(weight, layout);
}

}  // namespace qcts
