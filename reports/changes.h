// SPDX-License-Identifier: BSD-3-Clause
// Lists the changes since the run before, for the first screen of the page; not meant for decisions.
#pragma once

#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

struct RunBefore {
  std::string started_utc, plan, commit;
  std::vector<Verdict> verdicts;  // waivers applied
};

// Counts the verdicts that both runs have by their statuses before and now, and names the first cases of each
// change; counts those that only one has; lists the kernels whose fastest call is more than 5 % faster or
// slower, alone and over the roof's.
nlohmann::ordered_json changes_json(const RunBefore& before, const std::vector<Verdict>& now);

}  // namespace qcts
