// SPDX-License-Identifier: BSD-3-Clause
// The program: one command line, its subcommand, its exit code (commands.h).
#pragma once

namespace qcts::cli {

// Exceptions other than those of parsing go to the caller.
int run_program(int argc, char** argv);

}  // namespace qcts::cli
