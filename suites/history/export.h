// SPDX-License-Identifier: BSD-3-Clause
// `qcts export`: a run for other programs.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "suites/run/run_record.h"

namespace qcts {

// Latency as Google Benchmark's JSON (--benchmark_out), which its compare.py reads: of each case the medians
// of up to kRepetitions consecutive parts of its samples as repetitions, and their mean, median, stddev and
// cv. The times are wall times; cpu_time repeats them, because samples have no other.
inline constexpr size_t kRepetitions = 20;
nlohmann::ordered_json gbench_json(const RunRecord& record);

// One line a verdict (RFC 4180, with a header and LF line ends). Numbers that were not measured are empty.
std::string csv_text(const RunRecord& record);

// Counts, passes by scheme and operation, what is wrong, and latency, for a page or a comment.
std::string run_markdown(const RunRecord& record);

}  // namespace qcts
