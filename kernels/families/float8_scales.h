// SPDX-License-Identifier: BSD-3-Clause
// Float8 weights and activations with one float32 scale for a block of rows and columns: the work that
// variants of fp8 and fp8_row do once per block.
#pragma once

#include "kernels/families/block_scales.h"

namespace qcts {

// The problem's input and output. A block has block_rows x block_cols elements; scales are row-major, [down,
// across].
struct Float8Task {
  FloatRows from;
  int64_t k, block_rows, block_cols;
  SmallFloat format;  // e4m3 or e5m2
  // torchao 0.18 _choose_scale_float8: the largest magnitude, bounded, / the largest code, in `scale_dtype`.
  // MSLK's kernel (fp8_quantize.py, _kernel_quantize_fp8_row) has the lower bound 1/512 and stays in float32.
  // NaN: no bound.
  float min, max;
  float least;  // of the scale, after its division; 0: none
  uint32_t scale_dtype;
  bool is_static;  // the scale is given
  uint8_t* codes;
  char* scales;
  int64_t across() const { return k / block_cols; }
  bool one_scale() const { return block_rows == from.rows && across() == 1; }
};

// The task for the weight, by the parameters of its scheme and layout; or for x, by the activation policy:
// dyn_row, dyn_row_mslk, dyn_tensor, dyn_block128 with the optional planes hp_value_lb and hp_value_ub
// (float64); dyn_row_fbgemm with activation_scale_ub (float32) and fbgemm's least scale, 1 / (512 * 448);
// static_tensor and static_tensor_out with act_quant_scale.
Float8Task float8_task(const qcts_problem& problem);

float float8_scale(const Float8Task& task, float largest);
// Stores scale `index`, counted over all blocks.
void store_scale(const Float8Task& task, int64_t index, float scale);
float load_scale(const Float8Task& task, int64_t index);

// Rounds x / scale to nearest even, at most to the largest code. A NaN keeps its sign, whether it comes from
// x, from the scale or from the division.
uint8_t float8_code(SmallFloat format, float x, float scale);

// Writes the codes of bands [first, last), and their scales unless there is a single one. A band is a row if
// there is one scale, otherwise block_rows rows.
using Float8Bands = void (*)(const Float8Task& task, int64_t first, int64_t last);
// Quantizes the whole problem: first the scale of a tensor, if it has one, then the bands with as many
// threads as the problem allows.
void quantize_float8(const qcts_problem& problem, Largest largest, Float8Bands bands);

}  // namespace qcts
