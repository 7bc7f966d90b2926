// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/history_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <sstream>

#include "reports/waivers.h"
#include "suites/base/printable.h"
#include "suites/judge/latency_measures.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNotTrusted = "x";
constexpr const char* kBars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string run_text(const HistoryRun& run) {
  const auto count = [&](Status status) { return run.counts[static_cast<size_t>(status)]; };
  uint64_t all = 0;
  for (const uint64_t one : run.counts) all += one;
  const uint64_t passed = count(Status::pass), declined = count(Status::not_supported);
  char text[200];
  std::snprintf(text, sizeof text, "%5lld  %-20s  %-10.10s %8llu %8llu %8llu %8llu %8llu %8llu%s",
                static_cast<long long>(run.id), printable(run.started).c_str(), printable(run.commit).c_str(),
                static_cast<unsigned long long>(passed),
                static_cast<unsigned long long>(all - passed - declined),
                static_cast<unsigned long long>(declined), static_cast<unsigned long long>(run.changed),
                static_cast<unsigned long long>(run.added), static_cast<unsigned long long>(run.gone),
                run.suspended ? "  latency suspended" : "");
  return text;
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

void add_flips(const SeriesView& view, size_t max_cases, std::ostringstream& out) {
  if (view.flips.empty()) return;
  out << "\ncases whose status changed (" << view.flips.size() << ")\n";
  for (size_t i = 0; i < view.flips.size(); ++i) {
    if (max_cases != 0 && i == max_cases) {
      out << "  ... and " << view.flips.size() - max_cases << " more (--all)\n";
      return;
    }
    out << "  " << printable(view.flips[i].id) << ": " << status_name(view.flips[i].flips.front().before);
    for (const HistoryFlip& flip : view.flips[i].flips)
      out << ", " << status_name(flip.after) << " since run " << flip.run;
    out << "\n";
  }
}

void add_trends(const SeriesView& view, const HistoryViewOptions& options, std::ostringstream& out) {
  if (view.trends.empty()) return;
  size_t changed = 0;
  for (const PaceTrend& trend : view.trends) changed += !trend.changes.empty();
  out << "\nlatency (" << view.trends.size() << " cases, " << changed
      << " with a change; time over the roof's or alone, whichever varies less: ▁ fastest to █ slowest, x "
         "not to be trusted)\n";
  for (const PaceTrend& trend : view.trends) {
    const Pace& last = trend.series.nights.back().pace;
    char now[80];
    std::snprintf(now, sizeof now, "%10.4g us  %3.0f %% of roof", last.us.value,
                  last.has_roof() ? 100 / last.of_roof.value : 0);
    out << "  " << sparkline(trend.series, trend.levels.over_roof, options.nights) << now << "  "
        << printable(trend.series.id) << "\n";
    for (const ChangePoint& change : trend.changes)
      out << "      " << change_text(view, trend, change) << "\n";
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
  Json json = {{"schema", {{"name", kHistorySchemaName}, {"version", kHistoryViewSchema}}},
               {"series", Json::array()}};
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
  return json;
}

std::string history_text(const std::vector<SeriesView>& views, const HistoryViewOptions& options) {
  std::ostringstream out;
  if (views.empty()) out << "no run yet\n";
  for (const SeriesView& view : views) {
    out << (&view == views.data() ? "" : "\n") << series_title(view.series) << ": " << view.runs.size()
        << (view.runs.size() == 1 ? " run\n" : " runs\n");
    out << "  run  started               commit         pass    other declined  changed      new     gone\n";
    const size_t begin =
        options.nights == 0 || view.runs.size() <= options.nights ? 0 : view.runs.size() - options.nights;
    if (begin > 0) out << "  ... " << begin << " earlier ones (--last " << view.runs.size() << ")\n";
    for (size_t i = begin; i < view.runs.size(); ++i) out << run_text(view.runs[i]) << "\n";
    add_flips(view, options.cases, out);
    add_trends(view, options, out);
  }
  return out.str();
}

}  // namespace qcts
