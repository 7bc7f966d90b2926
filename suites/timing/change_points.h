// SPDX-License-Identifier: BSD-3-Clause
// Finds the points at which the level of a series of nights changes.
// The first test is for a single step: the largest standardized rank sum over all splits.
// The source is Hawkins and Deng 2010, "A Nonparametric Change-Point Control Chart".
// If there is no step, the second test is for a level that is left and reached again.
// The second test uses all arcs, as circular binary segmentation does (Olshen et al. 2004).
// Ranks assume no distribution, and a night with a wild value counts no more than any other.
// The threshold is derived, not tuned. The p value is a share of the permutations of the same nights.
// The share counts the permutations that reach the statistic (Phipson and Smyth 2010).
// A series with a change is divided there, and each part is tested again (Vostrikova 1981).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "suites/timing/stats.h"

namespace qcts {

// The share of series without a change that are divided nevertheless: at most two of a hundred.
inline constexpr double kChangeLevel = 0.02;

struct ChangePoint {
  size_t at = 0;  // index of the first value of the new level
  double p_value = 1;
  // The new level minus the old level: the median of all differences (Hodges and Lehmann 1963).
  // The interval is the 95 % interval that belongs to the rank sum.
  // The interval is infinite if the levels have too few values.
  Interval step;
};

// Returns the changes of at least `smallest` in either direction, in order. All values must be finite.
// The permutations are seeded, so the same values give the same answer.
std::vector<ChangePoint> change_points(std::span<const double> values, double smallest,
                                       double level = kChangeLevel);

// Returns the level of the second series minus the level of the first, in the same way as ChangePoint::step.
Interval shift_between(std::span<const double> before, std::span<const double> after);

}  // namespace qcts
