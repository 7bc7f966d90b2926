// SPDX-License-Identifier: BSD-3-Clause
#include "reports/changes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "reports/cells.h"

namespace qcts {
namespace {

constexpr size_t kCasesNamed = 20, kPacesNamed = 50;
constexpr const char* kPace = "ratio_to_dense";

struct Change {
  Status from, to;
  std::vector<std::string> ids;
};

// Changes for the worse come first, wrong answers before the rest.
auto weight(const Change& change) {
  const auto badness = [](Status status) { return status == Status::pass ? 9 : urgency(status); };
  return std::tuple(badness(change.to), -static_cast<int64_t>(change.ids.size()), badness(change.from));
}

struct Pace {
  double value, low, high;
};

std::optional<Pace> pace_of(const Verdict& verdict) {
  for (const Measure& measure : verdict.measures)
    if (measure.name == kPace && measure.low && measure.high)
      return Pace{measure.value, *measure.low, *measure.high};
  return std::nullopt;
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
      const std::optional<Pace> was = pace_of(old), is = pace_of(verdict);
      if (was && is && was->value > 0 && (is->high < was->low || is->low > was->high))
        paces.emplace_back(is->value / was->value, id, *was, *is);
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
  for (const auto& [ratio, id, was, is] : paces)
    if (speed.size() < kPacesNamed)
      speed.push_back({{"id", id}, {"times_as_fast", ratio}, {"before", was.value}, {"now", is.value}});
  return {{"before", {{"started", before.started_utc}, {"plan", before.plan}, {"commit", before.commit}}},
          {"compared", compared},
          {"added", added},
          {"gone", before.verdicts.size() - compared},
          {"turned", turned},
          {"speed", speed}};
}

}  // namespace qcts
