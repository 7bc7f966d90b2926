// SPDX-License-Identifier: BSD-3-Clause
// Which implementations a plan that takes only the best of each provider takes.
#pragma once

#include <vector>

#include "suites/cases/case.h"

namespace qcts {

struct Offer;

// Returns, of `found` (best first), the first offer of each provider that runs on this machine and serves the
// case; if none serves it, the first that runs, to say why not. For latency of linear, more than one where no
// list can know which is faster. This program's own kernels are asked whether they serve a synthetic case,
// with x, y and bias in the weight's dtype, as all that are timed have; a plug-in's first offer stands.
std::vector<const Offer*> best_of(const Case& c, const std::vector<const Offer*>& found);

}  // namespace qcts
