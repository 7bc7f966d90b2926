// SPDX-License-Identifier: BSD-3-Clause
// Computes scales and codes of float8 weights and activations.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "reference/formats/tensor.h"

namespace qcts {

// Bounds on the largest magnitude before it becomes a scale (activation_value_lb, activation_value_ub).
struct Float8Bounds {
  std::optional<double> lower, upper;
};

// Returns max |x|, or the positive quiet NaN if any x is NaN, as tensor.abs().amax() does.
float largest_magnitude(std::span<const float> values);

// Returns clamp(largest, lower, upper) / max in `dtype`, the type of the quantized tensor.
// The source is torchao 0.18.0 quantization/quant_primitives.py, _choose_scale_float8.
// The bounds are first rounded to this type, via float32.
// A float16 scale can be subnormal or 0, and a block of zeros has scale 0 (choice fp8_zero_row_nan).
// `code` is float8_e4m3fn or float8_e5m2.
float float8_scale(DType dtype, DType code, float largest, const Float8Bounds& bounds = {});

// Returns clamp(largest, 1/512, upper) / 448 in float32, whatever the tensor's type (choice fp8_floor_1_512).
// The source is MSLK 0017d3d, mslk/quantize/triton/fp8_quantize.py, _kernel_quantize_fp8_row.
float float8_scale_floored(float largest, std::optional<float> upper = {});

// Returns largest / max, at least 2^-23, in `dtype`.
// The source is torchao 0.6.1 to 0.11.0, _choose_qparams_affine with eps = 2^-23.
float float8_scale_at_least(DType dtype, DType code, float largest);

// Returns max(min(largest, upper) / max, 1 / (512 max)) in float32. The source is
// fbgemm_gpu/experimental/gen_ai/src/quantize/quantize.cu, dynamicQuantizeMatrixRowwise.
// Equals float8_scale_floored unless upper < 1/512.
// fbgemm's own maximum can lose a NaN; this one keeps it.
float float8_scale_bounded(DType code, float largest, float upper);

// Returns the code of x / scale in float32, clamped to the largest code (_quantize_affine_float8).
// 0/0 and Inf/Inf give NaN with the sign bit set, as on the x86 processors that write the goldens.
// The default NaN of x86 is negative (Intel SDM volume 1, 4.8.3.7).
uint8_t float8_code(DType code, float x, float scale);

// Returns the code of x * (1 / scale), clamped to the largest code.
// Both operations round to float32 (torchao 0.6.1 to 0.11.0, _quantize_affine_no_dtype_cast).
uint8_t float8_code_by_reciprocal(DType code, float x, float scale);
// The same with both operations in `common`, the dtype of x and of its scale.
uint8_t float8_code_by_reciprocal_in(DType common, DType code, float x, float scale);

}  // namespace qcts
