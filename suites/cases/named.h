// SPDX-License-Identifier: BSD-3-Clause
// What a command line names, found or refused in the same words by every command: RunError(Outcome::usage)
// with the nearest right word.
#pragma once

#include <filesystem>
#include <string>

#include "suites/cases/plan.h"

namespace qcts {

// The plan of suites/plans, or of a path. RunError also where the file is no plan.
Plan named_plan(const std::string& name);

// RunError unless a shared library (.so) or a program is there.
void check_provider_path(const std::filesystem::path& path);

// "builtin" and "reference" as they are; the absolute path of a file. RunError where there is none.
std::string located_provider(const std::string& name);

}  // namespace qcts
