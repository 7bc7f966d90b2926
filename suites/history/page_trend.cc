// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/page_trend.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "reference/schemes/scheme.h"
#include "suites/base/json_document.h"
#include "suites/history/history_view.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

// Five digits: more than a plot shows, and short in the page.
Json short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return std::isfinite(value) ? Json(std::strtod(text, nullptr)) : Json(nullptr);
}

Json night_json(const HistoryRun& run) {
  uint64_t all = 0;
  for (const uint64_t count : run.counts) all += count;
  const uint64_t passed = run.counts[static_cast<size_t>(Status::pass)],
                 declined = run.counts[static_cast<size_t>(Status::not_supported)];
  return {{"run", run.id},          {"started", run.started},           {"commit", run.commit},
          {"pass", passed},         {"other", all - passed - declined}, {"declined", declined},
          {"changed", run.changed}, {"suspended", run.suspended}};
}

// `place`: the index of each shown run.
Json times_json(const PaceTrend& trend, const std::map<int64_t, size_t>& place) {
  Json values(Json::array());
  values.get_ref<Json::array_t&>().resize(place.size());
  std::string trusted(place.size(), '1');
  double us = 0;
  for (const PaceNight& night : trend.series.nights) {
    us = night.pace.us.value;
    const auto shown = place.find(night.run);
    if (shown == place.end()) continue;
    values[shown->second] =
        short_number(trend.levels.over_roof ? night.pace.of_roof.value : night.pace.us.value);
    trusted[shown->second] = night.pace.trusted ? '1' : '0';
  }
  Json changes = Json::array();
  for (const ChangePoint& change : trend.changes) {
    const auto shown = place.find(trend.series.nights[trend.levels.nights[change.at]].run);
    if (shown == place.end()) continue;
    changes.push_back({{"at", shown->second},
                       {"ratio", short_number(std::exp(change.step.value))},
                       {"low", short_number(std::exp(change.step.low))},
                       {"high", short_number(std::exp(change.step.high))}});
  }
  return {{"id", trend.series.id},       {"us", short_number(us)}, {"over_roof", trend.levels.over_roof},
          {"values", std::move(values)}, {"trusted", trusted},     {"changes", changes}};
}

Json counts_json(const std::vector<NightCounts>& nights, uint64_t NightCounts::*count) {
  Json list = Json::array();
  for (const NightCounts& night : nights) list.push_back(night.*count);
  return list;
}

// A scheme that this version of qcts does not know is its own family.
Json families_json(const SchemeNights& schemes) {
  std::map<std::string, std::vector<NightCounts>> families;
  for (const auto& [name, nights] : schemes) {
    const Scheme* scheme = find_scheme(name);
    auto& sums =
        families.try_emplace(scheme ? std::string(scheme->family()) : name, nights.size()).first->second;
    for (size_t i = 0; i < nights.size(); ++i) {
      sums[i].pass += nights[i].pass;
      sums[i].bad += nights[i].bad;
      sums[i].undecided += nights[i].undecided;
      sums[i].declined += nights[i].declined;
    }
  }
  Json list = Json::array();
  for (const auto& [family, nights] : families)
    list.push_back({{"family", family},
                    {"pass", counts_json(nights, &NightCounts::pass)},
                    {"bad", counts_json(nights, &NightCounts::bad)},
                    {"undecided", counts_json(nights, &NightCounts::undecided)},
                    {"declined", counts_json(nights, &NightCounts::declined)}});
  return list;
}

Json case_json(const CaseFlips& flips) {
  Json changes = Json::array();
  for (const HistoryFlip& flip : flips.flips)
    changes.push_back(
        {{"run", flip.run}, {"before", status_name(flip.before)}, {"after", status_name(flip.after)}});
  return {{"id", flips.id}, {"changes", changes}};
}

}  // namespace

Json page_trend(History& history, const RunHead& head) {
  SeriesView view{series_of(head), {}, {}, {}};
  for (SeriesView& one : view_history(history, {}))
    if (one.series.same_as(view.series)) view = std::move(one);
  const size_t begin = view.runs.size() - std::min(view.runs.size(), kPageNights);
  std::map<int64_t, size_t> place;
  Json runs = Json::array(), flips = Json::array(), latency = Json::array();
  const std::vector<HistoryRun> shown(view.runs.begin() + static_cast<std::ptrdiff_t>(begin),
                                      view.runs.end());
  for (const HistoryRun& run : shown) {
    place.emplace(run.id, place.size());
    runs.push_back(night_json(run));
  }
  for (size_t i = 0; i < std::min(view.flips.size(), kPageFlips); ++i)
    flips.push_back(case_json(view.flips[i]));
  for (const PaceTrend& trend : view.trends)
    if (!trend.series.nights.empty() && place.contains(trend.series.nights.back().run))
      latency.push_back(times_json(trend, place));
  return json_document("trend", {{"machine_class", view.series.machine_class},
                                 {"plan", view.series.plan},
                                 {"selection", view.series.selection},
                                 {"threads", view.series.threads},
                                 {"nights_total", view.runs.size()},
                                 {"runs", runs},
                                 {"families", families_json(history.scheme_nights(view.series.id, shown))},
                                 {"flips_total", view.flips.size()},
                                 {"flips", flips},
                                 {"latency", latency}});
}

}  // namespace qcts
