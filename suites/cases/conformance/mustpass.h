// SPDX-License-Identifier: BSD-3-Clause
// Reads the list of case ids that defines conformance, and the minimum numbers of passes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts {

// Reads one id per line, with '#' comments. The ids must be sorted and unique. Throws std::runtime_error.
std::vector<std::string> load_mustpass(const std::filesystem::path& path);
// Reads {"schema": 1, "floor": {SCHEME: {OP: passes}}}.
std::vector<FloorEntry> load_floor(const std::filesystem::path& path);

// Returns the case ids that mustpass lists for a plan. They belong to files and to builtin kernels.
// Latency is left out, so that any machine can run them, and inputs that no recipe writes (kind_of).
std::vector<std::string> mustpass_ids(const std::string& plan,
                                      const std::vector<std::filesystem::path>& fixtures);

}  // namespace qcts
