// SPDX-License-Identifier: BSD-3-Clause
// A plan that samples asks each scheme of a large family some of the inputs, and the family as a whole all of
// them. A provider with only a few schemes would be asked too little, so it is asked every input of plan
// "full" on them.
#pragma once

#include <vector>

#include "suites/cases/candidates.h"

namespace qcts {

// Number of schemes of a family, for one operation, that count as few. From a larger number that is not the
// whole family, this many are chosen, evenly spread.
inline constexpr size_t kFewSchemes = 4;

// Chooses the schemes that are asked every input: all that are served if they are few, none if all schemes of
// the family are served, and otherwise a few of them. `served` has the order of the family, which has
// `all_of_family` schemes.
std::vector<const Scheme*> schemes_asked_whole(const std::vector<const Scheme*>& served,
                                               size_t all_of_family);

// Returns the operations and schemes on which the provider of `slot` is asked every input. `ask` asks its
// kernels, and is called at most once. Empty unless `plan` samples schemes.
Candidates::Served served_in_few(const Plan& plan, const Candidates& candidates, size_t slot,
                                 const OfferTable& offers, const AskSupport& ask);

}  // namespace qcts
