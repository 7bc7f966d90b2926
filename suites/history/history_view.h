// SPDX-License-Identifier: BSD-3-Clause
// `qcts history`: the runs of a history, cases whose status changes, and the trend of each latency case with
// its change points.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "suites/base/terminal.h"
#include "suites/history/history.h"
#include "suites/timing/change_points.h"

namespace qcts {

inline constexpr int kHistoryViewSchema = 2;

struct HistoryViewOptions {
  std::string filter;  // glob that may match anywhere in a case's id; "": all
  size_t nights = 30;  // shown in the text; 0: all. Change points come from all nights
  size_t cases = 20;   // of each list in the text; 0: all
};

struct PaceTrend {
  PaceSeries series;
  PaceLevels levels;
  std::vector<ChangePoint> changes;  // `at` is an index in `levels`
};

struct SeriesView {
  HistorySeries series;
  std::vector<HistoryRun> runs;
  std::vector<CaseFlips> flips;
  std::vector<PaceTrend> trends;
};

std::vector<SeriesView> view_history(History& history, const HistoryViewOptions& options);
nlohmann::ordered_json history_json(const std::vector<SeriesView>& views);  // reports/history.schema.json
std::string history_text(const std::vector<SeriesView>& views, const HistoryViewOptions& options,
                         const Screen& screen = {});

// Returns one character a night: "▁" for the fastest to "█" for the slowest, "x" for a night that is not
// trusted.
std::string sparkline(const PaceSeries& series, bool over_roof, size_t nights);

}  // namespace qcts
