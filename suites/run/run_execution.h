// SPDX-License-Identifier: BSD-3-Clause
// The third step of a run: every chosen case becomes a verdict in the record.
#pragma once

#include "reports/report.h"
#include "suites/base/interruption.h"
#include "suites/run/run_choice.h"

namespace qcts {

// Throws UsageError if request.out has an unfinished run that the request neither resumes nor restarts.
void check_unfinished(const RunRequest& request);

// Judges the chosen cases, correctness first. Writes each verdict to request.out/run.jsonl as it comes; with
// --resume, continues the record that is there. Returns the report of all verdicts, waivers applied.
// If --fail-fast ends it, report.stopped says so. Throws RunError if it is interrupted or cannot be resumed.
RunReport judge_cases(const RunRequest& request, RunSetup& setup, const RunChoice& choice, Progress& progress,
                      Interruption& interruption);

}  // namespace qcts
