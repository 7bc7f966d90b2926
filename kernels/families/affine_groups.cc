// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/affine_groups.h"

#include <math.h>

#include "kernels/abi/problem.h"
#include "kernels/families/elements.h"

namespace qcts {
namespace {

using scalar::round_to;

float clamped(float value, float min, float max) { return value < min ? min : value > max ? max : value; }

float symmetric_scale(const AffineRecipe& recipe, float low, float high) {
  if (recipe.mapping == AffineMapping::symmetric)
    return round_to(recipe.dtype, (-low > high ? -low : high) / ((recipe.code_max - recipe.code_min) / 2));
  const float by_low = round_to(recipe.dtype, low / recipe.code_min),
              by_high = round_to(recipe.dtype, high / recipe.code_max);
  return by_low > by_high ? by_low : by_high;
}

}  // namespace

AffineRecipe affine_recipe(const qcts_problem& p) {
  if (p.op == QCTS_OP_QUANTIZE_ACTIVATION)
    return {p.x_dtype, p.x_dtype, AffineMapping::asymmetric, -128, 127};
  const qcts_scheme_params& params = scheme_params(p);
  const AffineMapping mapping = params.mapping == QCTS_SYMMETRIC_NO_CLIPPING
                                    ? AffineMapping::symmetric_no_clipping
                                : params.mapping == QCTS_ASYMMETRIC ? AffineMapping::asymmetric
                                                                    : AffineMapping::symmetric;
  return {p.w_dtype, scale_dtype(p), mapping, static_cast<float>(params.code_min),
          static_cast<float>(params.code_max)};
}

// The minimum scale is the smallest normal number of the input's dtype; a NaN is not below it.
AffineGroup affine_group(const AffineRecipe& recipe, float low, float high) {
  const bool symmetric = recipe.mapping != AffineMapping::asymmetric;
  const float min = recipe.dtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f;
  float scale =
      symmetric
          ? symmetric_scale(recipe, low, high)
          : round_to(recipe.dtype, round_to(recipe.dtype, high - low) / (recipe.code_max - recipe.code_min));
  if (scale < min) scale = min;
  float zero_point = 0;
  if (!symmetric) {
    const float below = nearbyintf(round_to(recipe.dtype, low / scale));
    zero_point = clamped(round_to(recipe.dtype, recipe.code_min - below), recipe.code_min, recipe.code_max);
    if (zero_point != zero_point) zero_point = 0;
  }
  return {scale, round_to(recipe.common, 1.0f / scale), static_cast<float>(static_cast<int>(zero_point))};
}

AffineTask affine_task(const qcts_problem& p) {
  const bool weight = p.op == QCTS_OP_QUANTIZE;
  const auto plane = [&](const char* name) { return plane_data(p.out_planes, p.n_out_planes, name); };
  return {affine_recipe(p),
          static_cast<const char*>(p.x),
          p.ldx_bytes,
          p.k,
          weight && p.group != 0 ? p.group : p.k,
          static_cast<int8_t*>(plane("qdata")),
          static_cast<char*>(plane("scale")),
          static_cast<int8_t*>(plane("zero_point")),
          plane_dtype(p.out_planes, p.n_out_planes, "scale")};
}

void write_parameters(const AffineTask& task, int64_t index, const AffineGroup& group) {
  scalar::store(task.scale_dtype, task.scales, index, group.scale);
  task.zero_points[index] = static_cast<int8_t>(group.zero_point);
}

}  // namespace qcts
