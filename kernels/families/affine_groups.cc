// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/families/affine_groups.h"

#include <math.h>

#include "kernels/abi/problem.h"
#include "kernels/families/elements.h"
#include "kernels/machine/parallel.h"

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

float smallest_normal(uint32_t dtype) { return dtype == QCTS_F16 ? 0x1p-14f : 0x1p-126f; }

struct TensorCall {
  AffineTask task;
  AffineGroup group;
  AffineRows rows;
};

void call_affine_rows(void* context, int64_t first, int64_t last) {
  const TensorCall& call = *static_cast<const TensorCall*>(context);
  call.rows(call.task, call.group, first, last);
}

}  // namespace

AffineRecipe intx_recipe(const qcts_problem& p) {
  if (p.op == QCTS_OP_QUANTIZE_ACTIVATION)
    return {p.x_dtype, p.x_dtype, AffineMapping::asymmetric, -128, 127, smallest_normal(p.x_dtype)};
  const qcts_scheme_params& params = scheme_params(p);
  const AffineMapping mapping = params.mapping == QCTS_SYMMETRIC_NO_CLIPPING
                                    ? AffineMapping::symmetric_no_clipping
                                : params.mapping == QCTS_ASYMMETRIC ? AffineMapping::asymmetric
                                                                    : AffineMapping::symmetric;
  return {p.w_dtype,
          scale_dtype(p),
          mapping,
          static_cast<float>(params.code_min),
          static_cast<float>(params.code_max),
          smallest_normal(p.w_dtype)};
}

AffineRecipe int8_recipe(const qcts_problem& p) {
  const qcts_scheme_params& params = scheme_params(p);
  return {p.w_dtype,
          QCTS_F32,
          AffineMapping::symmetric,
          static_cast<float>(params.code_min),
          static_cast<float>(params.code_max),
          kInt8MinScale};
}

AffineRecipe int4_int32_recipe(const qcts_problem& p) {
  return {p.w_dtype, p.w_dtype, AffineMapping::asymmetric, 0, 15, round_to(p.w_dtype, 1e-6f)};
}

// A NaN is not below the minimum scale.
AffineGroup affine_group(const AffineRecipe& recipe, float low, float high) {
  const bool symmetric = recipe.mapping != AffineMapping::asymmetric;
  float scale =
      symmetric
          ? symmetric_scale(recipe, low, high)
          : round_to(recipe.dtype, round_to(recipe.dtype, high - low) / (recipe.code_max - recipe.code_min));
  if (scale < recipe.min_scale) scale = recipe.min_scale;
  float zero_point = 0;
  if (!symmetric) {
    const float below = nearbyintf(round_to(recipe.dtype, low / scale));
    zero_point = clamped(round_to(recipe.dtype, recipe.code_min - below), recipe.code_min, recipe.code_max);
    if (zero_point != zero_point) zero_point = 0;
  }
  return {scale, round_to(recipe.common, 1.0f / scale), static_cast<float>(static_cast<int>(zero_point))};
}

AffineTask affine_task(const qcts_problem& p, const AffineRecipe& recipe) {
  const bool weight = p.op == QCTS_OP_QUANTIZE;
  const auto plane = [&](const char* name) { return plane_data(p.out_planes, p.n_out_planes, name); };
  return {recipe,
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

void quantize_affine_tensor(const qcts_problem& p, const AffineRecipe& recipe, Largest largest,
                            AffineRows rows) {
  const float magnitude = largest_of_all(p, largest);
  TensorCall call = {affine_task(p, recipe), affine_group(recipe, -magnitude, magnitude), rows};
  write_parameters(call.task, 0, call.group);
  parallel_for(p.threads, p.n, 1, call_affine_rows, &call);
}

}  // namespace qcts
