// SPDX-License-Identifier: BSD-3-Clause
// Implements `qcts history`: shows the runs of a history and the cases whose status changes.
// Also shows the trend of each latency case with its change points.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "suites/history/history.h"
#include "suites/timing/change_points.h"

namespace qcts {

inline constexpr const char* kHistorySchemaName = "qcts.history";
inline constexpr int kHistoryViewSchema = 1;

struct HistoryViewOptions {
  std::string filter;  // a glob that may match anywhere in a case's id; "": all cases
  size_t nights = 30;  // nights in the text; 0: all; change points come from all nights
  size_t cases = 20;   // cases of each list in the text; 0: all
};

struct PaceTrend {
  PaceSeries series;
  PaceLevels levels;
  std::vector<ChangePoint> changes;  // ChangePoint::at is an index into `levels`
};

struct SeriesView {
  HistorySeries series;
  std::vector<HistoryRun> runs;
  std::vector<CaseFlips> flips;
  std::vector<PaceTrend> trends;
};

std::vector<SeriesView> view_history(History& history, const HistoryViewOptions& options);
nlohmann::ordered_json history_json(const std::vector<SeriesView>& views);  // reports/history.schema.json
std::string history_text(const std::vector<SeriesView>& views, const HistoryViewOptions& options);

// Returns one character per night: "▁" for the fastest to "█" for the slowest.
// "x" stands for a night that is not trusted.
std::string sparkline(const PaceSeries& series, bool over_roof, size_t nights);

}  // namespace qcts
