// SPDX-License-Identifier: BSD-3-Clause
// The checked-in list of case ids that defines conformance, and the floor of passes beside it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/report.h"

namespace qcts {

// One line an id, '#' begins a comment; sorted, unique. Throws std::runtime_error.
std::vector<std::string> load_mustpass(const std::filesystem::path& path);
// {"schema": 1, "floor": {SCHEME: {OP: passes}}}
std::vector<FloorEntry> load_floor(const std::filesystem::path& path);

// The case ids of a plan that need no machine but this one: files and builtin kernels, latency left out. What
// mustpass lists.
std::vector<std::string> mustpass_ids(const std::string& plan,
                                      const std::vector<std::filesystem::path>& fixtures);

}  // namespace qcts
