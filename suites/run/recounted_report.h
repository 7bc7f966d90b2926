// SPDX-License-Identifier: BSD-3-Clause
// Compares a report.json with the record of its run, since either file can be edited.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/verdict.h"
#include "suites/record/run_record.h"

namespace qcts {

// Returns the first list in which this installation and the one that judged a run differ, as
// "mustpass_sha256: 1f.. there, 2e.. here", or "". `folders` are those of the fixtures.
std::string other_lists(const RunHead& head, const std::vector<std::filesystem::path>& folders);

// Recomputes the counts from the record in `folder`, with the lists of this installation, and returns its
// verdicts with waivers applied. `report` is the report.json of the folder. What no record has is not
// compared: how long the run took, what --budget left out, and the changes since an earlier run. Throws
// Failure, which names the first field that differs with both values, and UsageError if there is no whole
// record, or if a version of qcts with other lists judged.
std::vector<Verdict> recounted_verdicts(const std::filesystem::path& folder,
                                        const nlohmann::ordered_json& report);

}  // namespace qcts
