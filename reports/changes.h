// SPDX-License-Identifier: BSD-3-Clause
// Lists the changes since the previous run, for the first screen of the page. Nothing is decided from them.
#pragma once

#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

struct RunBefore {
  std::string started_utc, plan, commit;
  std::vector<Verdict> verdicts;  // waivers applied
};

// Compares two runs.
// For verdicts in both runs, counts the old and new statuses and names the first cases of each change.
// Counts the verdicts that only one run has.
// Lists latency cases whose intervals of the ratio to dense do not overlap.
nlohmann::ordered_json changes_json(const RunBefore& before, const std::vector<Verdict>& now);

}  // namespace qcts
