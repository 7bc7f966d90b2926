// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

namespace qcts {

// The fewest different values that a mistake must predict to be named: one scale or one row is not evidence.
inline constexpr size_t kLeastDistinct = 20;
// The fewest with which a small case may join a mistake that another case names (reports/cells.h).
inline constexpr size_t kLeastAgreeing = 2;

// How many different wrong values an answer may have to be explained, or only to agree with a mistake.
struct Distinct {
  size_t least = kLeastDistinct, most = SIZE_MAX;
  bool allows(size_t values) const { return least <= values && values <= most; }
};
inline constexpr Distinct kEnough = {};
inline constexpr Distinct kTooFew = {kLeastAgreeing, kLeastDistinct - 1};

}  // namespace qcts
