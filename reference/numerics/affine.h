// SPDX-License-Identifier: BSD-3-Clause
// Affine quantization with an integer zero point: w = (code - zero_point) * scale.
// The source is torchao 0.18.0, quantization/quant_primitives.py. Its functions are
// _choose_qparams_affine, _quantize_affine_no_dtype_cast and _dequantize_affine_no_dtype_check.
// Every operation rounds to a type. The choice of parameters rounds to the input's type.
// An operation on input and scale rounds to their common type.
// The common type is float32 unless both have the same type (torch's promotion).
#pragma once

#include <span>

#include "reference/formats/tensor.h"

namespace qcts {

// The rule that maps a block's range to scale and zero point.
// Below, n = code_min, p = code_max, low = min(min w, 0) and high = max(max w, 0).
enum class Mapping : uint8_t {
  symmetric,              // max(-low, high) / ((p - n) / 2), zero point 0 for signed codes
  symmetric_no_clipping,  // the larger of low / n and high / p, zero point 0: nothing is clipped
  asymmetric,             // (high - low) / (p - n), zero point n - round(low / scale), clamped
};

struct AffineRecipe {
  Mapping mapping = Mapping::symmetric;
  int code_min = -128, code_max = 127;
  double min_scale = 0;          // torch.clamp(scale, min=eps), compared in the input's type
  DType input = DType::float32;  // float32, float16 or bfloat16
  DType scale = DType::float32;  // the type in which scales are stored
};

struct AffineParameters {
  float scale = 0;  // a value of AffineRecipe::scale
  int zero_point = 0;
};

// Returns the common type of two floating types.
DType promoted(DType a, DType b);

// Chooses the parameters of a block of weights of type recipe.input.
// A block that contains a NaN gets a NaN scale and zero point 0.
AffineParameters choose_affine(const AffineRecipe& recipe, std::span<const float> block);
// Quantizes one block: clamp(round(w * (1 / scale)) + zero_point, code_min, code_max), half to even.
// NaN becomes 0, because float32 -> int8 goes through int32.
// The low byte of int32's indefinite value 0x80000000 is 0.
class AffineQuantizer {
 public:
  AffineQuantizer(const AffineRecipe& recipe, AffineParameters parameters);
  int operator()(float w) const;

 private:
  float min_, max_, zero_point_, reciprocal_;
  DType common_;
};

}  // namespace qcts
