// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights and activations with one float32 scale a block of rows and columns: what the variants of fp8
// and fp8_row do once a block. Ordinary functions, compiled once for the baseline processor.
#pragma once

#include "kernels/families/block_scales.h"

namespace qcts {

// What the problem reads and writes. A block has block_rows x block_cols elements; scales stand row-major,
// [down, across].
struct Float8Task {
  FloatRows from;
  int64_t k, block_rows, block_cols;
  SmallFloat format;  // e4m3 or e5m2
  // torchao 0.18 _choose_scale_float8: the largest magnitude, bounded, / the largest code, in `scale_dtype`;
  // MSLK's kernel (fp8_quantize.py, _kernel_quantize_fp8_row) bounds it by 1/512 from below and stays in
  // float32. Unbounded: NaN.
  float min, max;
  uint32_t scale_dtype;
  bool is_static;  // the scale is given
  uint8_t* codes;
  char* scales;
  int64_t across() const { return k / block_cols; }
  bool one_scale() const { return block_rows == from.rows && across() == 1; }
};

// Of the weight by the parameters of its scheme and layout, or of x by the activation policy: dyn_row,
// dyn_row_mslk, dyn_tensor, dyn_block128 with the planes hp_value_lb and hp_value_ub (float64) where given,
// static_tensor and static_tensor_out with act_quant_scale.
Float8Task float8_task(const qcts_problem& problem);

float float8_scale(const Float8Task& task, float largest);
// Scale `index` of all.
void store_scale(const Float8Task& task, int64_t index, float scale);
float load_scale(const Float8Task& task, int64_t index);

// x / scale, to nearest even, at most the largest code; the NaN of x, of the scale, or the processor's own
// keeps its sign.
uint8_t float8_code(SmallFloat format, float x, float scale);

// The codes, and the scales unless there is but one, of bands [first, last): of a row each where there is one
// scale, of block_rows otherwise.
using Float8Bands = void (*)(const Float8Task& task, int64_t first, int64_t last);
// The whole problem: the one scale of a tensor first, then its bands by as many threads as the problem
// allows.
void quantize_float8(const qcts_problem& problem, Largest largest, Float8Bands bands);

}  // namespace qcts
