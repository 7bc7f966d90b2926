// SPDX-License-Identifier: BSD-3-Clause
#include "reference/numerics/affine.h"

#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

struct BlockRange {
  float low = 0, high = 0;  // low <= 0 <= high; NaN if the block contains one
};

BlockRange range_of(std::span<const float> block) {
  BlockRange range;
  for (float w : block) {
    if (std::isnan(w)) return {w, w};
    range.low = std::min(range.low, w);
    range.high = std::max(range.high, w);
  }
  return range;
}

// torch.clamp(scale, min=eps) keeps NaN.
float floored(const AffineRecipe& recipe, float scale) {
  const float min = static_cast<float>(round_to(recipe.input, recipe.min_scale));
  return scale < min ? min : scale;
}

float symmetric_scale(const AffineRecipe& recipe, BlockRange range) {
  const DType dtype = recipe.input;
  if (recipe.mapping == Mapping::symmetric) {
    const float half_range = static_cast<float>(recipe.code_max - recipe.code_min) / 2;
    return div_in(dtype, std::isnan(range.low) ? range.low : std::max(-range.low, range.high), half_range);
  }
  const float by_low = div_in(dtype, range.low, static_cast<float>(recipe.code_min));
  const float by_high = div_in(dtype, range.high, static_cast<float>(recipe.code_max));
  return by_low > by_high ? by_low : by_high;
}

// .to(torch.int8)
int to_code(float value) { return std::isnan(value) ? 0 : static_cast<int>(value); }

}  // namespace

DType promoted(DType a, DType b) { return a == b ? a : DType::float32; }

AffineParameters choose_affine(const AffineRecipe& recipe, std::span<const float> block) {
  const DType dtype = recipe.input;
  const BlockRange range = range_of(block);
  AffineParameters chosen;
  if (recipe.mapping != Mapping::asymmetric) {
    chosen.scale = floored(recipe, symmetric_scale(recipe, range));
    chosen.zero_point = (recipe.code_max + recipe.code_min + 1) / 2;
  } else {
    const float span = sub_in(dtype, range.high, range.low);
    const float steps = static_cast<float>(recipe.code_max - recipe.code_min);
    chosen.scale = floored(recipe, div_in(dtype, span, steps));
    const float below = std::nearbyint(div_in(dtype, range.low, chosen.scale));
    const float zero_point = sub_in(dtype, static_cast<float>(recipe.code_min), below);
    chosen.zero_point =
        to_code(std::isnan(zero_point) ? zero_point
                                       : std::clamp(zero_point, static_cast<float>(recipe.code_min),
                                                    static_cast<float>(recipe.code_max)));
  }
  chosen.scale = static_cast<float>(round_to(recipe.scale, chosen.scale));
  return chosen;
}

AffineQuantizer::AffineQuantizer(const AffineRecipe& recipe, AffineParameters parameters)
    : min_(static_cast<float>(recipe.code_min)),
      max_(static_cast<float>(recipe.code_max)),
      zero_point_(static_cast<float>(parameters.zero_point)),
      reciprocal_(div_in(recipe.scale, 1.0f, parameters.scale)),
      common_(promoted(recipe.input, recipe.scale)) {}

int AffineQuantizer::operator()(float w) const {
  const float steps = std::nearbyint(mul_in(common_, w, reciprocal_));
  const float code = add_in(common_, steps, zero_point_);
  return std::isnan(code) ? 0 : static_cast<int>(std::clamp(code, min_, max_));
}

}  // namespace qcts
