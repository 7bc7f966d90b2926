// SPDX-License-Identifier: BSD-3-Clause
// Chooses the best implementation of each provider, for plans that take only those.
#pragma once

#include <vector>

#include "suites/cases/case.h"

namespace qcts {

struct Offer;

// Returns, from `found` (best first), each provider's first offer that runs on this machine and serves the
// case; if none serves it, the first that runs, to report the reason. For latency of linear, returns several
// offers of a provider if the order cannot tell which is faster. Whether an offer serves a synthetic case is
// known for builtin kernels alone, whose supports() is called with x, y and bias in the weight's dtype, as in
// all timed cases; for a plug-in the first offer is taken.
std::vector<const Offer*> best_of(const Case& c, const std::vector<const Offer*>& found);

}  // namespace qcts
