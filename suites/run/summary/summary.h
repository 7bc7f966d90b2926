// SPDX-License-Identifier: BSD-3-Clause
// The summary of a run on a terminal.
#pragma once

#include <string>
#include <vector>

#include "reports/cells.h"
#include "reports/report.h"
#include "suites/base/terminal.h"

namespace qcts {

// Returns a text in which no line is wider than the screen.
// The text begins with counts by scheme, sizes, latency and reasons of not_supported.
// Failures with their rerun lines follow, the most important ones last.
// The verdict, the counts and the reports come last.
// `files` are the written reports, starting with the one to open first.
// The summary names the `durations` slowest cases.
std::string summary_text(const RunReport& report, const std::vector<std::string>& files, const Screen& screen,
                         size_t durations = 0);

// Returns the verdicts that prevent conformance, in groups of one cause.
// Wrong answers come first, then crashes and similar failures.
// Within these, numerics comes before determinism, then a cause that is explained before one that is not, and
// then the largest group is first.
std::vector<Group> failure_groups(const RunReport& report);

// Print the parts of the summary that have separate source files.
void print_failures(const RunReport& report, Printout& out);
void print_latency(const RunReport& report, Printout& out);

}  // namespace qcts
