// SPDX-License-Identifier: BSD-3-Clause
// The values verdict of `check`: what reference/values found, as a verdict, as JSON and as text.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "reference/values/values.h"
#include "reports/verdict.h"
#include "suites/base/terminal.h"

namespace qcts::cli {

// Adds --max-zero-groups and --max-saturated, each a percentage such as 5, 0.1 or 1%.
void add_value_limits(CLI::App& command, ValueLimits& limits);

// Returns pass, or fail with the number of findings and the first of them.
Verdict values_verdict(const CheckpointValues& values, const std::string& rerun);
// Prints the notes, then the findings, each with a limit on the number of lines, on stderr.
void print_value_findings(const CheckpointValues& values);
// Prints the shares of zero groups and saturated codes in all quantized tensors, and the tensor with the
// most.
void print_values(const CheckpointValues& values, Printout& out);
// Returns {"findings", "notes", "tensors"}.
nlohmann::ordered_json values_json(const CheckpointValues& values);

}  // namespace qcts::cli
