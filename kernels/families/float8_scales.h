// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights and activations with one float32 scale for each block of rows and columns.
// The variants of fp8 and fp8_row use these functions once per block.
#pragma once

#include "kernels/families/block_scales.h"

namespace qcts {

// The problem's input and output. A block has block_rows x block_cols elements.
// Scales are row-major, with shape [down, across].
struct Float8Task {
  FloatRows from;
  int64_t k, block_rows, block_cols;
  SmallFloat format;  // e4m3 or e5m2
  // The scale is the largest magnitude, within bounds, divided by the largest code,
  // in `scale_dtype` (torchao 0.18 _choose_scale_float8).
  // MSLK's kernel (fp8_quantize.py, _kernel_quantize_fp8_row) has the lower bound 1/512 and stays in float32.
  // A bound of NaN means that there is no bound.
  float min, max;
  float least;  // lower bound of the scale after its division; 0: none
  uint32_t scale_dtype;
  bool is_static;  // the scale is given
  uint8_t* codes;
  char* scales;
  int64_t across() const { return k / block_cols; }
  bool one_scale() const { return block_rows == from.rows && across() == 1; }
};

// Returns the task for the weight, which follows from its scheme and layout,
// or the task for x, which follows from the activation policy.
// The policies are dyn_row, dyn_row_mslk, dyn_row_fbgemm, dyn_tensor, dyn_block128, static_tensor and
// static_tensor_out.
// The dynamic policies of torchao have the optional planes hp_value_lb and hp_value_ub (float64).
// dyn_row_fbgemm has activation_scale_ub (float32) and fbgemm's minimum scale, 1 / (512 * 448).
// The two static policies have act_quant_scale.
Float8Task float8_task(const qcts_problem& problem);

float float8_scale(const Float8Task& task, float largest);
// Stores scale `index`, counted over all blocks.
void store_scale(const Float8Task& task, int64_t index, float scale);
float load_scale(const Float8Task& task, int64_t index);

// Rounds x / scale to nearest even. Values beyond the largest code become the largest code.
// A NaN keeps its sign, whether it comes from x, from the scale or from the division.
uint8_t float8_code(SmallFloat format, float x, float scale);

// Writes the codes of bands [first, last). Also writes their scales, unless the whole tensor has one scale.
// A band is one row if the tensor has one scale; otherwise it is block_rows rows.
using Float8Bands = void (*)(const Float8Task& task, int64_t first, int64_t last);
// Quantizes the whole problem. Computes the scale of the tensor first, if there is only one.
// Then quantizes the bands with as many threads as the problem allows.
void quantize_float8(const qcts_problem& problem, Largest largest, Float8Bands bands);

}  // namespace qcts
