// SPDX-License-Identifier: BSD-3-Clause
// The summary of a run on a terminal.
#pragma once

#include <string>
#include <vector>

#include "reports/cells.h"
#include "reports/report.h"
#include "suites/base/terminal.h"

namespace qcts {

// Returns the text, of which no line is wider than the screen. The verdict, the counts and the reports come
// last: counts by scheme, sizes, latency, reasons of not_supported, failures with their rerun lines, verdict.
// `files`: the written reports, the one to open first at the front.
std::string summary_text(const RunReport& report, const std::vector<std::string>& files,
                         const Screen& screen);

// The verdicts that prevent conformance, in groups of one cause: wrong answers first, then crashes and the
// like; of these numerics before determinism, then the largest group.
std::vector<Group> failure_groups(const RunReport& report);

// The parts of the summary that have files of their own.
void print_failures(const RunReport& report, Printout& out);
void print_latency(const RunReport& report, Printout& out);

}  // namespace qcts
