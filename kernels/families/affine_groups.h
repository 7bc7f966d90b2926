// SPDX-License-Identifier: BSD-3-Clause
// Scale and zero point of a group, or of a row of x, and what the variants of intx read and write. Ordinary
// functions, compiled once for the baseline processor; the AVX2 variants have affine_group in vectors
// (kernels/avx2/quantize/groups.h).
#pragma once

#include <cstdint>

#include "kernels/abi/qcts_kernel.h"

namespace qcts {

// torchao 0.18 quant_primitives.py, _choose_qparams_affine and _quantize_affine: every step is rounded to
// `dtype`, that of the input; codes are made in `common`, float32 where the scale is wider than the input.
enum class AffineMapping : uint8_t { symmetric, symmetric_no_clipping, asymmetric };
struct AffineRecipe {
  uint32_t dtype, common;
  AffineMapping mapping;
  float code_min, code_max;
};
// Of the weight by the parameters of its scheme, or of x: int8, asymmetric, in x's own dtype
// (_apply_int8_act_asym_per_token_quant_dequant).
AffineRecipe affine_recipe(const qcts_problem& problem);

// code = clamp(round(w * reciprocal) + zero_point); a code that is NaN is 0.
struct AffineGroup {
  float scale, reciprocal, zero_point;
};
// low <= 0 <= high, the range of the group with 0; both NaN if it holds one.
AffineGroup affine_group(const AffineRecipe& recipe, float low, float high);

// What the problem reads and writes: rows of the weight cut into groups, or rows of x, which are a group
// each.
struct AffineTask {
  AffineRecipe recipe;
  const char* data;
  int64_t ld_bytes, k, group;
  int8_t* codes;        // [rows, k]
  char* scales;         // [rows, k / group], of scale_dtype
  int8_t* zero_points;  // [rows, k / group]
  uint32_t scale_dtype;
};
AffineTask affine_task(const qcts_problem& problem);
// Group `index` of all: its scale, in scale_dtype, and its zero point.
void write_parameters(const AffineTask& task, int64_t index, const AffineGroup& group);

}  // namespace qcts
