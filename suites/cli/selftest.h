// SPDX-License-Identifier: BSD-3-Clause
// Subcommands that test the judge itself or single inputs, as in commands.h.
#pragma once

#include <CLI/CLI.hpp>

namespace qcts::cli {

void add_selftest(CLI::App& app, int& exit_code);  // selftest kill, selftest alarms
void add_replay(CLI::App& app, int& exit_code);    // shrink, replay

}  // namespace qcts::cli
