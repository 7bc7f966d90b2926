// SPDX-License-Identifier: BSD-3-Clause
// Computes the scale and zero point of a group of intx, int8 or int4_int32, or of a row of x.
// Also describes the planes that the variants read and write.
// The AVX2 variants compute affine_group in vectors (kernels/avx2/quantize/groups.h).
#pragma once

#include <cstdint>

#include "kernels/families/block_scales.h"

namespace qcts {

// Follows _choose_qparams_affine and _quantize_affine of torchao 0.18 quant_primitives.py.
// Every step is rounded to `dtype`, the dtype of the input.
// Codes are computed in `common`, which is float32 if the scale is wider than the input.
enum class AffineMapping : uint8_t { symmetric, symmetric_no_clipping, asymmetric };
struct AffineRecipe {
  uint32_t dtype, common;
  AffineMapping mapping;
  float code_min, code_max;
  float min_scale;  // a value of `dtype`
};
using AffineRecipeOf = AffineRecipe (*)(const qcts_problem& problem);
// Returns the recipe of an intx weight, from the parameters of its scheme.
// For x it returns the recipe of _apply_int8_act_asym_per_token_quant_dequant:
// int8, asymmetric, in the dtype of x. The minimum scale is the smallest normal number of the dtype.
AffineRecipe intx_recipe(const qcts_problem& problem);
// The recipe of int8 weights (Int8Tensor.from_hp) is symmetric with float32 scales.
constexpr float kInt8MinScale = 0x1p-23f;
AffineRecipe int8_recipe(const qcts_problem& problem);
// The recipe of int4_int32 (Int4PlainInt32Tensor, _from_hp_xpu) is asymmetric,
// with codes 0 .. 15 and scales of at least 1e-6.
AffineRecipe int4_int32_recipe(const qcts_problem& problem);

// A code is clamp(round(w * reciprocal) + zero_point); a NaN becomes 0.
struct AffineGroup {
  float scale, reciprocal, zero_point;
};
// `low` is the minimum of the group and 0,
// and `high` is the maximum of the group and 0. Both are NaN if the group contains a NaN.
AffineGroup affine_group(const AffineRecipe& recipe, float low, float high);

// The problem's input and output.
// The input is a weight, whose rows are cut into groups, or x, whose rows are one group each.
struct AffineTask {
  AffineRecipe recipe;
  const char* data;
  int64_t ld_bytes, k, group;
  int8_t* codes;        // [rows, k]
  char* scales;         // [rows, k / group], of scale_dtype
  int8_t* zero_points;  // [rows, k / group]
  uint32_t scale_dtype;
};
AffineTask affine_task(const qcts_problem& problem, const AffineRecipe& recipe);
// Writes the scale (in scale_dtype) and the zero point of group `index`, counted over all rows.
void write_parameters(const AffineTask& task, int64_t index, const AffineGroup& group);

// Writes the codes of rows [first, last), which share one scale.
using AffineRows = void (*)(const AffineTask& task, const AffineGroup& group, int64_t first, int64_t last);
// Quantizes the whole weight by a symmetric recipe with one scale.
// Computes the scale first, then the rows, with as many threads as the problem allows.
void quantize_affine_tensor(const qcts_problem& problem, const AffineRecipe& recipe, Largest largest,
                            AffineRows rows);

}  // namespace qcts
