// SPDX-License-Identifier: BSD-3-Clause
// What a run says of itself before it judges anything.
#pragma once

#include <filesystem>
#include <vector>

#include "suites/cases/plan.h"
#include "suites/run/run.h"
#include "suites/run/run_record.h"

namespace qcts {

// All but the providers, the cases and the note on latency. `folders`: of fixtures.
RunHead head_of(const RunRequest& request, const Plan& plan,
                const std::vector<std::filesystem::path>& folders);

}  // namespace qcts
