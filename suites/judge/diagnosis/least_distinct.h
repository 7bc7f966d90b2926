// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace qcts {

// The fewest different values that a mistake must predict to be named: one scale or one row is no evidence.
inline constexpr size_t kLeastDistinct = 20;
// The fewest with which a small case may join a mistake that another case names (reports/cells.h).
inline constexpr size_t kLeastAgreeing = 2;

}  // namespace qcts
