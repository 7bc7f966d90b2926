// SPDX-License-Identifier: BSD-3-Clause
// What commands share beside those on files (file_command.h): checks of numbers, and the exit code of what
// went wrong.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "reports/report.h"

namespace qcts::cli {

// For options of unsigned numbers, where "-1" would come out as a very large one.
CLI::Validator not_negative();

// An option of one value that is given twice counts as it was given last, so that scripts can put theirs
// before a user's. Call it after the options are declared.
void let_the_last_count(CLI::App& command);

// What `body` returns. An exception becomes one line on stderr and the code of its RunError; of any other 5.
int exit_code_of(const std::function<Outcome()>& body);

}  // namespace qcts::cli
