// SPDX-License-Identifier: BSD-3-Clause
// Implements `qcts export`, which writes a run for other programs.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "suites/record/run_record.h"

namespace qcts {

// Returns latency as Google Benchmark's JSON (--benchmark_out), which its compare.py reads.
// The samples of each case are cut into at most kRepetitions consecutive parts.
// The medians of the parts are the repetitions, with their mean, median, stddev and cv.
// The times are wall times. cpu_time repeats them, because samples have no other time.
inline constexpr size_t kRepetitions = 20;
nlohmann::ordered_json gbench_json(const RunRecord& record);

// Returns latency as Bencher Metric Format (bencher.dev): by full id, {"latency": {"value", "lower_value",
// "upper_value"}} in nanoseconds, with the interval of the median if there is one.
nlohmann::ordered_json bmf_json(const RunRecord& record);

// The waivers are already applied. Returns a line for each cause of failure, as a command of GitHub Actions
// that annotates the run:
// "::error title=int8_row linear::...".
std::string github_annotations(const RunRecord& record);

// Returns one line per verdict (RFC 4180, with a header and LF line ends).
// Numbers that were not measured are empty.
std::string csv_text(const RunRecord& record);

// Returns a text for a page or a comment.
// The text has the counts, the passes by scheme and operation, the failures, and the latency.
std::string run_markdown(const RunRecord& record);

}  // namespace qcts
