// SPDX-License-Identifier: BSD-3-Clause
// Helpers for commands: checks of numbers, and exit codes of errors.
// file_command.h has the helpers for commands on files.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "reports/report.h"

namespace qcts::cli {

// Validates an option of unsigned type, which would read "-1" as a very large number.
CLI::Validator not_negative();

// If an option with one value is repeated, the last one wins.
// Scripts can therefore put defaults before a user's options. Call this after declaring the options.
void last_option_wins(CLI::App& command);

// Adds --junit cells|cases, which decides what a testcase in junit.xml stands for.
void add_junit_option(CLI::App& command, JunitForm& form);

// Writes a json_document() to a file. Reports this on stdout, unless the document is printed there.
// Throws WriteFailure.
void write_document(const std::filesystem::path& file, std::string_view name,
                    const nlohmann::ordered_json& body, bool silent);

// Returns the exit code of `body`. For an exception, prints one line on stderr.
// A RunError has its own code. Any other exception has the code 5, as has standard output that takes no more.
int exit_code_of(const std::function<Outcome()>& body);

}  // namespace qcts::cli
