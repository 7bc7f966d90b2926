// SPDX-License-Identifier: BSD-3-Clause
// Makes the head of a run's record. The head describes the run before anything is judged.
#pragma once

#include <filesystem>
#include <vector>

#include "suites/cases/plan.h"
#include "suites/record/run_record.h"
#include "suites/run/run.h"

namespace qcts {

// Returns the head without the providers, the cases and the latency note. `folders` are the fixture folders.
RunHead head_of(const RunRequest& request, const Plan& plan,
                const std::vector<std::filesystem::path>& folders);

}  // namespace qcts
