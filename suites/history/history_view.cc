// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/history_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <span>

#include "reports/waivers.h"
#include "suites/base/json_document.h"
#include "suites/base/printable.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMinutes = 16, kCommitLength = 10;  // of "2026-01-01T00:00:00Z"
constexpr const char* kNotTrusted = "x";
constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

// The table of runs; without seconds and commits if it does not fit with them.
void add_runs(std::span<const HistoryRun> runs, Printout& out) {
  const bool suspended = std::ranges::any_of(runs, &HistoryRun::suspended);
  const auto write = [&](bool whole) {
    std::vector<Column> columns = {{"run", Align::right}, {"started"}};
    if (whole) columns.push_back({"commit"});
    for (const char* title : {"pass", "other", "declined", "changed", "new", "gone"})
      columns.push_back({title, Align::right});
    if (suspended) columns.push_back({"latency"});
    std::vector<TableRow> rows;
    for (const HistoryRun& run : runs) {
      uint64_t all = 0;
      for (const uint64_t one : run.counts) all += one;
      const uint64_t passed = run.counts[static_cast<size_t>(Status::pass)],
                     declined = run.counts[static_cast<size_t>(Status::not_supported)];
      TableRow& row = rows.emplace_back();
      row = {std::to_string(run.id), whole ? run.started : run.started.substr(0, kMinutes)};
      if (whole) row.push_back(run.commit.substr(0, kCommitLength));
      for (const uint64_t count :
           {passed, all - passed - declined, declined, run.changed, run.added, run.gone})
        row.push_back(std::to_string(count));
      if (suspended) row.push_back(run.suspended ? "suspended" : "");
    }
    return out.table(columns, rows, 2);
  };
  if (!write(true)) write(false);
}

const HistoryRun& run_of(const SeriesView& view, int64_t id) {
  return *std::find_if(view.runs.begin(), view.runs.end(),
                       [&](const HistoryRun& run) { return run.id == id; });
}

std::string change_text(const SeriesView& view, const PaceTrend& trend, const ChangePoint& change) {
  const HistoryRun& run = run_of(view, trend.series.nights[trend.levels.nights[change.at]].run);
  const auto percent = [](double log) { return 100 * std::expm1(log); };
  char text[200];
  std::snprintf(text, sizeof text, "%+.1f %% [%+.1f, %+.1f] since run %lld (%s, commit %.10s)",
                percent(change.step.value), percent(change.step.low), percent(change.step.high),
                static_cast<long long>(run.id), printable(run.started).c_str(),
                printable(run.commit).c_str());
  return text;
}

std::string series_title(const HistorySeries& series) {
  return "plan " + printable(series.plan) +
         (series.selection.empty() ? "" : " " + printable(series.selection)) + " on " + series.machine_class +
         ", " + std::to_string(series.threads) + (series.threads == 1 ? " thread" : " threads");
}

void add_flips(const SeriesView& view, size_t max_cases, Printout& out) {
  if (view.flips.empty()) return;
  out.blank();
  out.text("cases whose status changed (" + std::to_string(view.flips.size()) + ")", 0, Ink::bold);
  for (size_t i = 0; i < view.flips.size(); ++i) {
    if (max_cases != 0 && i == max_cases)
      return out.text("... and " + std::to_string(view.flips.size() - max_cases) + " more (--all)", 2);
    std::string text = view.flips[i].id + ": " + std::string(status_name(view.flips[i].flips.front().before));
    for (const HistoryFlip& flip : view.flips[i].flips)
      text += ", " + std::string(status_name(flip.after)) + " since run " + std::to_string(flip.run);
    out.text(text, 2);
  }
}

void add_trends(const SeriesView& view, const HistoryViewOptions& options, Printout& out) {
  if (view.trends.empty()) return;
  size_t changed = 0;
  for (const PaceTrend& trend : view.trends) changed += !trend.changes.empty();
  out.blank();
  out.text("latency (" + std::to_string(view.trends.size()) + " cases, " + std::to_string(changed) +
               " with a change)",
           0, Ink::bold);
  out.text(
      "The fastest call of each night, over the roof's or on its own, whichever varies less: ▁ fastest to █ "
      "slowest, x not to be trusted.",
      2);
  for (const PaceTrend& trend : view.trends) {
    const Pace& last = trend.series.nights.back().pace;
    char now[80];
    std::snprintf(now, sizeof now, " %.4g us, %.0f %% of roof", last.us.value,
                  last.has_roof() ? 100 / last.of_roof.value : 0);
    out.text(trend.series.id, 2);
    out.text(sparkline(trend.series, trend.levels.over_roof, options.nights) + now, 4);
    for (const ChangePoint& change : trend.changes)
      out.text(change_text(view, trend, change), 6, Ink::yellow);
  }
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json trend_json(const PaceTrend& trend) {
  Json json = {{"id", trend.series.id},
               {"measure", trend.levels.over_roof ? "of_roof" : "us"},
               {"nights", Json::array()},
               {"changes", Json::array()}};
  for (const PaceNight& night : trend.series.nights)
    json["nights"].push_back(
        {{"run", night.run},
         {"us", number(night.pace.us.value)},
         {"of_roof", night.pace.has_roof() ? number(night.pace.of_roof.value) : Json(nullptr)},
         {"low", number(night.pace.of_roof.low)},
         {"high", number(night.pace.of_roof.high)},
         {"trusted", night.pace.trusted}});
  for (const ChangePoint& change : trend.changes)
    json["changes"].push_back({{"run", trend.series.nights[trend.levels.nights[change.at]].run},
                               {"ratio", std::exp(change.step.value)},
                               {"low", number(std::exp(change.step.low))},
                               {"high", number(std::exp(change.step.high))},
                               {"p_value", change.p_value}});
  return json;
}

Json run_json(const HistoryRun& run) {
  Json counts = Json::object();
  for (int i = 0; i < kStatusCount; ++i)
    counts[std::string(status_name(static_cast<Status>(i)))] = run.counts[static_cast<size_t>(i)];
  return {{"run", run.id},          {"started", run.started},
          {"commit", run.commit},   {"counts", counts},
          {"changed", run.changed}, {"new", run.added},
          {"gone", run.gone},       {"latency_suspended", run.suspended}};
}

Json flips_json(const CaseFlips& flips) {
  Json list = Json::array();
  for (const HistoryFlip& flip : flips.flips)
    list.push_back(
        {{"run", flip.run}, {"before", status_name(flip.before)}, {"after", status_name(flip.after)}});
  return {{"id", flips.id}, {"changes", list}};
}

}  // namespace

std::string sparkline(const PaceSeries& series, bool over_roof, size_t nights) {
  const size_t begin = nights == 0 || series.nights.size() <= nights ? 0 : series.nights.size() - nights;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  const auto time_of = [&](const Pace& pace) { return over_roof ? pace.of_roof.value : pace.us.value; };
  for (size_t i = begin; i < series.nights.size(); ++i) {
    if (!series.nights[i].pace.trusted) continue;
    low = std::min(low, time_of(series.nights[i].pace));
    high = std::max(high, time_of(series.nights[i].pace));
  }
  std::string bars;
  for (size_t i = begin; i < series.nights.size(); ++i) {
    const Pace& pace = series.nights[i].pace;
    if (!pace.trusted) {
      bars += kNotTrusted;
      continue;
    }
    const double part = high > low ? std::log(time_of(pace) / low) / std::log(high / low) : 0;
    bars += kBars[std::min<size_t>(static_cast<size_t>(part * std::size(kBars)), std::size(kBars) - 1)];
  }
  return bars;
}

std::vector<SeriesView> view_history(History& history, const HistoryViewOptions& options) {
  const auto is_wanted = [pattern = "*" + options.filter + "*"](const std::string& id) {
    return glob_match(pattern, id);
  };
  std::vector<SeriesView> views;
  for (const HistorySeries& series : history.series()) {
    SeriesView view{series, history.runs(series.id), {}, {}};
    for (CaseFlips& flips : history.flips(series.id))
      if (is_wanted(flips.id)) view.flips.push_back(std::move(flips));
    for (PaceSeries& pace : history.paces(series.id)) {
      if (!is_wanted(pace.id)) continue;
      PaceLevels levels = trusted_levels(pace);
      std::vector<ChangePoint> changes = change_points(levels.logs, std::log1p(kSlowdownMargin));
      view.trends.push_back({std::move(pace), std::move(levels), std::move(changes)});
    }
    views.push_back(std::move(view));
  }
  return views;
}

Json history_json(const std::vector<SeriesView>& views) {
  Json json = {{"series", Json::array()}};
  for (const SeriesView& view : views) {
    Json one = {{"machine_class", view.series.machine_class},
                {"plan", view.series.plan},
                {"selection", view.series.selection},
                {"threads", view.series.threads},
                {"runs", Json::array()},
                {"flips", Json::array()},
                {"latency", Json::array()}};
    for (const HistoryRun& run : view.runs) one["runs"].push_back(run_json(run));
    for (const CaseFlips& flips : view.flips) one["flips"].push_back(flips_json(flips));
    for (const PaceTrend& trend : view.trends) one["latency"].push_back(trend_json(trend));
    json["series"].push_back(std::move(one));
  }
  return json_document("history", json, kHistoryViewSchema);
}

std::string history_text(const std::vector<SeriesView>& views, const HistoryViewOptions& options,
                         const Screen& screen) {
  Printout out(screen);
  if (views.empty()) out.text("no run yet");
  for (const SeriesView& view : views) {
    if (&view != views.data()) out.blank();
    out.text(series_title(view.series) + ": " + std::to_string(view.runs.size()) +
                 (view.runs.size() == 1 ? " run" : " runs"),
             0, Ink::bold);
    const size_t begin =
        options.nights == 0 || view.runs.size() <= options.nights ? 0 : view.runs.size() - options.nights;
    if (begin > 0)
      out.text(
          "... " + std::to_string(begin) + " earlier ones (--last " + std::to_string(view.runs.size()) + ")",
          2);
    add_runs(std::span(view.runs).subspan(begin), out);
    add_flips(view, options.cases, out);
    add_trends(view, options, out);
  }
  return out.str();
}

}  // namespace qcts
