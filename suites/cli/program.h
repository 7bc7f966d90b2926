// SPDX-License-Identifier: BSD-3-Clause
// Runs the program's command line.
#pragma once

namespace qcts::cli {

// Runs the chosen subcommand and returns its exit code (commands.h).
// Exceptions other than parse errors go to the caller.
int run_program(int argc, char** argv);

}  // namespace qcts::cli
