// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "suites/record/run_record.h"

namespace qcts {

// Returns the first field in which a run differs from what this installation would judge, as
// "mustpass_sha256: 1f.. there, 2e.. here", and "" if it would judge the same.
std::string other_installation(const RunHead& head);

}  // namespace qcts
