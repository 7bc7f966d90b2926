// SPDX-License-Identifier: BSD-3-Clause
#include "reports/changes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "reports/cells.h"

namespace qcts {
namespace {

constexpr size_t kCasesNamed = 20, kPacesNamed = 50;
constexpr double kSpeedMargin = 1.05;  // what two runs of one kernel differ by on a machine with neighbours

struct Change {
  Status from, to;
  std::vector<std::string> ids;
};

// Changes for the worse come first, wrong answers before the rest.
auto weight(const Change& change) {
  const auto badness = [](Status status) { return status == Status::pass ? 9 : urgency(status); };
  return std::tuple(badness(change.to), -static_cast<int64_t>(change.ids.size()), badness(change.from));
}

// The fastest call in us, and over the roof's; 0: not measured.
struct Pace {
  double us = 0, of_roof = 0;
};

Pace pace_of(const Verdict& verdict) {
  Pace pace;
  for (const Measure& measure : verdict.measures) {
    if (measure.name == "fastest_us") pace.us = measure.value;
    if (measure.name == "fastest_of_roof") pace.of_roof = measure.value;
  }
  return pace;
}

// How many times as fast the kernel is now, by its time alone or over the roof's, whichever changed less; 1
// if the two differ in direction, or nothing was measured.
double times_as_fast(const Pace& before, const Pace& now) {
  if (!(before.us > 0) || !(now.us > 0)) return 1;
  const double alone = before.us / now.us;
  const bool have_roof = before.of_roof > 0 && now.of_roof > 0;
  const double over_roof = have_roof ? before.of_roof / now.of_roof : alone;
  if ((alone > 1) != (over_roof > 1)) return 1;
  return alone > 1 ? std::min(alone, over_roof) : std::max(alone, over_roof);
}

nlohmann::ordered_json first_of(const std::vector<std::string>& ids) {
  return std::vector<std::string>(ids.begin(),
                                  ids.begin() + static_cast<ptrdiff_t>(std::min(ids.size(), kCasesNamed)));
}

}  // namespace

nlohmann::ordered_json changes_json(const RunBefore& before, const std::vector<Verdict>& now) {
  std::unordered_map<std::string, const Verdict*> earlier;
  for (const Verdict& verdict : before.verdicts) earlier.emplace(verdict.full_id(), &verdict);
  std::map<std::pair<Status, Status>, Change> changes;
  std::vector<std::tuple<double, std::string, Pace, Pace>> paces;
  size_t compared = 0, added = 0;
  for (const Verdict& verdict : now) {
    const std::string id = verdict.full_id();
    const auto found = earlier.find(id);
    if (found == earlier.end()) {
      ++added;
      continue;
    }
    ++compared;
    const Verdict& old = *found->second;
    if (verdict.case_id.kind == Kind::latency) {
      const Pace was = pace_of(old), is = pace_of(verdict);
      const double times = times_as_fast(was, is);
      if (times > kSpeedMargin || times < 1 / kSpeedMargin) paces.emplace_back(times, id, was, is);
    } else if (old.status != verdict.status) {
      Change& change = changes[{old.status, verdict.status}];
      change.from = old.status;
      change.to = verdict.status;
      change.ids.push_back(id);
    }
  }
  std::vector<Change> sorted;
  for (auto& [key, change] : changes) sorted.push_back(std::move(change));
  std::ranges::sort(sorted, {}, weight);
  nlohmann::ordered_json turned = nlohmann::ordered_json::array(), speed = nlohmann::ordered_json::array();
  for (const Change& change : sorted)
    turned.push_back({{"from", status_name(change.from)},
                      {"to", status_name(change.to)},
                      {"count", change.ids.size()},
                      {"cases", first_of(change.ids)}});
  std::ranges::sort(paces, {},
                    [](const auto& pace) { return std::tie(std::get<0>(pace), std::get<1>(pace)); });
  for (const auto& [times, id, was, is] : paces)
    if (speed.size() < kPacesNamed)
      speed.push_back({{"id", id}, {"times_as_fast", times}, {"before_us", was.us}, {"now_us", is.us}});
  return {{"before", {{"started", before.started_utc}, {"plan", before.plan}, {"commit", before.commit}}},
          {"compared", compared},
          {"added", added},
          {"gone", before.verdicts.size() - compared},
          {"turned", turned},
          {"speed", speed}};
}

}  // namespace qcts
