// SPDX-License-Identifier: BSD-3-Clause
// Chooses the best implementation of each provider, for plans that run no others.
#pragma once

#include <vector>

#include "suites/cases/case.h"

namespace qcts {

struct Offer;

// Returns each provider's first offer in `found` (best first) that runs on this machine and serves the case.
// If no offer serves it, returns the first that runs, to report the reason.
// For latency of linear, returns several offers of a provider if the order cannot tell which is faster.
// Only builtin kernels can be asked whether they serve a synthetic case.
// supports() of these kernels is called with x, y and bias in the weight's dtype, as in all timed cases.
// For a plug-in, returns the first offer.
std::vector<const Offer*> best_of(const Case& c, const std::vector<const Offer*>& found);

}  // namespace qcts
