// SPDX-License-Identifier: BSD-3-Clause
// The words of failures: one title for the terminal, the page, JUnit, Markdown and `qcts compare`.
// A title is for people and may change with the run; Group::name() is the key that stays.
#pragma once

#include <string>

#include "reports/cells.h"

namespace qcts {

// Returns the text between "hypothesis: " and its prediction, or "" if the reason names no hypothesis.
std::string hypothesis_of(const std::string& reason);
// Returns a mistake that fits, but on too few values to be named, or "".
std::string agreement_of(const std::string& reason);
// Returns the place that holds all that is wrong, "the last column", or "" if the reason names none.
std::string region_of(const std::string& reason);
// Returns which check failed, if it is not the check of values: "not batch-invariant, as it claims",
// "wrong after a call with other data". Otherwise returns "".
std::string check_of(const std::string& reason);

// "scale of the previous row, all in the last row"; "wrong y, 2 % to 100 % of the elements"; "not
// deterministic, as it claims"; "its worker died: SIGSEGV". Never has a '#'.
std::string failure_title(const Group& group);
// The same for one failure of which only the reason is known.
std::string failure_title(const std::string& reason);

// Returns a reason without the path of a log, and with only the last line of what a process last wrote.
std::string without_log(const std::string& reason);

// Returns what a reason says after the first wrong element: the call, and the diagnosis.
std::string diagnosis_of(const Verdict& verdict);
// The same for a group's simplest verdict; empty if the title says it already.
std::string failure_details(const Group& group);

}  // namespace qcts
