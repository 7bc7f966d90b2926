// SPDX-License-Identifier: BSD-3-Clause
// Finds where the level of a series of nights changes. Two questions are asked: does it step once (the
// largest standardized rank sum over all splits, Hawkins and Deng 2010, "A Nonparametric Change-Point Control
// Chart"), and if not, does it leave its level and come back (the same over all arcs, as in circular binary
// segmentation, Olshen et al. 2004)? Ranks assume no distribution, and a night with a wild value weighs no
// more than any other. The threshold is derived, not tuned: the p value is the share of permutations of the
// same nights that reach the statistic (Phipson and Smyth 2010). A series with a change is divided there, and
// each part is tested again (Vostrikova 1981).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "suites/timing/stats.h"

namespace qcts {

// At most two of a hundred series without a change are divided.
inline constexpr double kChangeLevel = 0.02;

struct ChangePoint {
  size_t at = 0;  // index of the first value of the new level
  double p_value = 1;
  // New minus old level: the median of all differences (Hodges and Lehmann 1963), with the interval of 95 %
  // that belongs to the rank sum; infinite where the levels have too few values for one.
  Interval step;
};

// Returns the changes of at least `smallest` in either direction, in order. Values that are not finite must
// have been left out. Seeded: the same values give the same answer.
std::vector<ChangePoint> change_points(std::span<const double> values, double smallest,
                                       double level = kChangeLevel);

// Returns the level of the second series minus that of the first, as ChangePoint::step.
Interval shift_between(std::span<const double> before, std::span<const double> after);

}  // namespace qcts
