// SPDX-License-Identifier: BSD-3-Clause
// Looks up the plans and providers that a command line names.
// All commands report an unknown name in the same way: a UsageError with the nearest known name.
#pragma once

#include <filesystem>
#include <string>

#include "suites/cases/plan.h"

namespace qcts {

// Loads a plan by its name in suites/plans or by its path.
// Throws UsageError, also for a file that is not a plan.
Plan named_plan(const std::string& name);

// Throws UsageError unless `path` is a shared library (.so) or a program.
void check_provider_path(const std::filesystem::path& path);

// Returns "builtin" and "reference" unchanged, and any other name as the absolute path of a file.
// Throws UsageError if the file does not exist.
std::string located_provider(const std::string& name);

}  // namespace qcts
