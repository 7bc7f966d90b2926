// SPDX-License-Identifier: BSD-3-Clause
// The groups in which `qcts --help` lists the commands, and an example of each.
#pragma once

#include <CLI/CLI.hpp>

namespace qcts::cli {

// Call this after all commands were added.
void add_groups_and_examples(CLI::App& app);

}  // namespace qcts::cli
