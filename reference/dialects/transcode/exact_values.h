// SPDX-License-Identifier: BSD-3-Clause
// Compares two forms of one weight, each by its own format's rule.
#pragma once

#include <cstdint>
#include <string>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

struct WeightComparison {
  std::string unequal;  // the first element whose real values differ, before any rounding; empty: none
  uint64_t elements = 0;
  uint64_t rounded_otherwise = 0;  // elements of equal real values that dequantize to different bits
  std::string first_rounded;       // the first of them, with both values; or the two dtypes
  bool other_dtype = false;        // OUT dequantizes to a different dtype

  bool rounds_otherwise() const { return other_dtype || rounded_otherwise > 0; }
};

// Compares the exact real values (code - zero) * scale of all elements, and what both dequantize to.
// Both weights are of a kind that grid_of() reads. Throws std::invalid_argument for any other.
WeightComparison compare_weights(const NamedTensor& in, const NamedTensor& out);

}  // namespace qcts
