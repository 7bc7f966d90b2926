// SPDX-License-Identifier: BSD-3-Clause
// Helpers for commands (file_command.h has those for commands on files): checks of numbers, and exit codes of
// errors.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "reports/report.h"

namespace qcts::cli {

// For options of unsigned type, for which "-1" would be read as a very large number.
CLI::Validator not_negative();

// Makes the last one win if an option with one value is repeated, so that scripts can put defaults before a
// user's options. Call it after declaring the options.
void last_option_wins(CLI::App& command);

// --junit cells|cases: what a testcase of junit.xml is.
void add_junit_option(CLI::App& command, JunitForm& form);

// Writes a json_document() to a file and says so on stdout, unless the document is printed there as well.
// Throws RunError (infrastructure) if it cannot be written.
void write_document(const std::filesystem::path& file, std::string_view name,
                    const nlohmann::ordered_json& body, bool silent);

// Returns the exit code of `body`. Prints an exception as one line on stderr and returns the code of its
// RunError, or 5 for any other exception.
int exit_code_of(const std::function<Outcome()>& body);

}  // namespace qcts::cli
