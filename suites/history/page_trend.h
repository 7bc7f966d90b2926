// SPDX-License-Identifier: BSD-3-Clause
// What report.html shows of a history and of an earlier run.
#pragma once

#include <nlohmann/json.hpp>

#include "reports/changes.h"
#include "suites/history/history.h"

namespace qcts {

inline constexpr size_t kPageNights = 90, kPageFlips = 200;

// Returns the last kPageNights nights of the run's series as a json_document() "trend": counts by night, the
// kPageFlips cases with the most changes of status, and each latency case's times with their steps, which
// come from all nights. Without nights if the history does not have the series.
nlohmann::ordered_json page_trend(History& history, const RunHead& head);

// A run as the page compares it, without what a history does not keep.
RunBefore run_before(const RecordedRun& run);

}  // namespace qcts
