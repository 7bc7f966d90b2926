// SPDX-License-Identifier: BSD-3-Clause
// Decides claims about speed from the intervals of paired comparisons.
#pragma once

#include <span>
#include <string>

#include "reports/verdict.h"
#include "suites/timing/stats.h"

namespace qcts {

// If the interval of a ratio is further than this below 1, that is a slowdown. If it is further than this
// above 1, that is a speed-up. Without the margin, one comparison in forty would find a slowdown of 0 %. With
// it, a slowdown of 0 % was found in 0 of 400 runs, and one of 3 % in 396 of 400 (EPYC Zen 4, busy
// neighbours).
inline constexpr double kSlowdownMargin = 0.01;
// A kernel may be this much slower after loading and still counts as being as fast as before. The loaded
// planes are at other addresses, which is enough to change a time.
inline constexpr double kReloadMargin = 0.05;

// Both return a claim that `ratio` decides. `ratio` is the time of `against` over that of the subject. If the
// measurement is in doubt, the claim is inconclusive, whatever the interval.
SpeedClaim faster_claim(std::string subject, std::string against, const Interval& ratio, bool in_doubt);
SpeedClaim as_fast_claim(std::string subject, std::string against, const Interval& ratio, bool in_doubt);

// Returns the status that the required claims give a verdict that gates. It is inconclusive if the
// measurement is in doubt. Otherwise it is fail if one of these claims fails or a target is missed. Otherwise
// it is inconclusive if anything is undecided.
Status gated_status(std::span<const SpeedClaim> claims, Decision targets, bool in_doubt);

// Returns the texts of the claims, joined by "; ". A claim that fails although it is not required says so.
std::string claims_text(std::span<const SpeedClaim> claims);

}  // namespace qcts
