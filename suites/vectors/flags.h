// SPDX-License-Identifier: BSD-3-Clause
// Finds the special values of a vector in its bytes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

enum class VectorFlag : uint8_t {
  tie,
  scale_zero,
  just_below_power_of_two,
  negative_zero,
  infinity,
  nan,
  subnormal,
};

struct VectorFlagInfo {
  VectorFlag flag;
  std::string_view name;   // "just_below_power_of_two"
  std::string_view means;  // one line
  std::string_view hunts;  // the bug that such vectors find
};
std::span<const VectorFlagInfo> vector_flags();
std::string_view flag_name(VectorFlag flag);

// Returns the flags of a weight and of the planes (layout "plain") that the scheme makes from it, in order.
std::vector<VectorFlag> flags_of(const Scheme& scheme, const Matrix& weight, const Planes& planes);

}  // namespace qcts
