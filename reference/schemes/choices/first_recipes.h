// SPDX-License-Identifier: BSD-3-Clause
// The recipes of torchao's first generation, 0.9.0 and 0.13.0, whose planes mean the same as those
// of today's schemes.
#pragma once

#include "reference/schemes/scheme.h"

namespace qcts {

enum class WeightRecipe : uint8_t {
  current,           // Scheme::quantize
  least_scale_2_23,  // intx: scales are at least 2^-23 (0.9.0, _choose_qparams_affine with this eps)
  least_scale_eps,   // intx: scales are at least torch.finfo(weight.dtype).eps (0.13.0, without an eps)
  reciprocal,  // fp8: float8_scale_at_least, float8_code_by_reciprocal (0.9.0, scale_dtype=torch.float32)
  narrow_reciprocal,  // fp8: the same, with the reciprocal and the product in the weight's dtype (0.9.0,
                      // scale_dtype=None)
};

// Quantizes a weight to the planes of `scheme` in layout "plain", by a recipe that is for its family.
// `current` is for every scheme, and takes the recipe of `layout`.
Planes quantize_by(WeightRecipe recipe, const Scheme& scheme, const Matrix& weight, Layout layout = kPlain);

}  // namespace qcts
