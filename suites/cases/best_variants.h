// Which implementations a plan that takes only the best of each provider takes.
#pragma once

#include <vector>

#include "suites/cases/case.h"

namespace qcts {

// Of `found`, which is best first, the first of each provider that runs on this machine and serves the case,
// or says why not if none does; of linear's latency more than one where no list can know which is faster.
// This program's kernels are asked whether they serve it, if it is synthetic, with x, y and bias in the
// weight's dtype, as all that are timed have; a plug-in's are not run here, so that the first of them stands.
std::vector<const Implementation*> best_of(const Case& c, const std::vector<const Implementation*>& found);

}  // namespace qcts
