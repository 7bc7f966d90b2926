// SPDX-License-Identifier: BSD-3-Clause
// The parts of a history that report.html shows.
#pragma once

#include <nlohmann/json.hpp>

#include "suites/history/history.h"

namespace qcts {

inline constexpr size_t kPageNights = 90, kPageFlips = 200;

// Returns the last kPageNights nights of the run's series as a json_document() "trend". It has the counts by
// night, those of each family of schemes, the kPageFlips cases with the most changes of status, and the times
// of each latency case with their steps. The steps come from all nights. If the history does not have the
// series, there are no nights.
nlohmann::ordered_json page_trend(History& history, const RunHead& head);

}  // namespace qcts
