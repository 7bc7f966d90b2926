// SPDX-License-Identifier: BSD-3-Clause
// Runs the program's command line.
#pragma once

#include <string>

namespace qcts::cli {

// The commit from which the program was built, such as "ec7801b5" or "ec7801b5-dirty"; "unknown" if neither
// git nor an archive made by git says. built_commit.cmake defines it only in the program qcts, so that a
// new commit compiles one file.
extern const char* const kBuiltCommit;

// Runs the chosen subcommand and returns its exit code (commands.h). `commit` is the suite's, for reports.
// Exceptions other than parse errors go to the caller.
int run_program(int argc, char** argv, const std::string& commit);

}  // namespace qcts::cli
