// SPDX-License-Identifier: BSD-3-Clause
// The JSON of a comparison, whole and as a report shows it.
#include <cmath>

#include "suites/base/json_document.h"
#include "suites/comparison/comparison_lists.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kIdsInReport = 20, kListInReport = 50;  // the record has the rest

Json interval_json(const Interval& interval) {
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); };
  return {{"value", number(interval.value)}, {"low", number(interval.low)}, {"high", number(interval.high)}};
}

Json head_json(const ComparedHead& head) {
  return {{"name", head.name},
          {"started", head.started},
          {"commit", head.commit},
          {"plan", head.plan},
          {"machine_class", head.machine_class},
          {"cases", head.cases}};
}

// `cut`: the maximum number of entries of a list; 0: all.
Json latency_json(const RunComparison& comparison, size_t cut) {
  const PaceComparison& latency = comparison.latency;
  Json json = {{"left_out", comparison.latency_left_out},
               {"compared", latency.compared},
               {"spread", latency.spread},
               {"resolution", std::isfinite(latency.resolution) ? Json(latency.resolution) : Json(nullptr)}};
  for (const PaceList& named : kPaceLists) {
    json[named.key] = Json::array();
    for (const PaceChange& change : first_of(latency.*named.list, cut))
      json[named.key].push_back({{"id", change.id},
                                 {"ratio", interval_json(change.ratio)},
                                 {"before_us", change.before_us},
                                 {"after_us", change.after_us},
                                 {"nights", change.nights},
                                 {"doubt", change.doubt}});
  }
  return json;
}

Json sizes_json(const RunComparison& comparison, size_t cut) {
  Json rows = Json::array();
  for (const BytesChange& size : first_of(comparison.sizes, cut))
    rows.push_back(
        {{"id", size.id}, {"measure", size.measure}, {"before", size.before}, {"after", size.after}});
  return rows;
}

Json environment_json(const RunComparison& comparison) {
  Json rows = Json::array();
  for (const FieldChange& change : comparison.environment)
    rows.push_back({{"field", change.field}, {"before", change.before}, {"after", change.after}});
  return rows;
}

Json status_json(const std::optional<Status>& status) {
  return status ? Json(status_name(*status)) : Json(nullptr);
}

Json cause_json(const ChangeGroup& group) {
  const auto ids = first_of(group.ids, kIdsInReport);
  return {{"before", status_json(group.before)},
          {"after", status_json(group.after)},
          {"title", group.title},
          {"count", group.ids.size()},
          {"cases", std::vector<std::string>(ids.begin(), ids.end())}};
}

}  // namespace

Json comparison_json(const RunComparison& comparison) {
  Json json = {
      {"before", head_json(comparison.before)},
      {"after", head_json(comparison.after)},
      {"exit_code", static_cast<int>(outcome_of(comparison))},
      {"summary", comparison_line(comparison)},
      {"not_comparable", comparison.not_comparable.empty() ? Json(nullptr) : Json(comparison.not_comparable)},
      {"unchanged", comparison.unchanged},
      {"drawn_anew", comparison.drawn_anew},
      {"still_failing", comparison.still_failing}};
  for (const NamedList& named : kLists) {
    json[named.key] = Json::array();
    for (const StatusChange& change : comparison.*named.list)
      json[named.key].push_back({{"id", change.id},
                                 {"before", status_json(change.before)},
                                 {"after", status_json(change.after)},
                                 {"title", change.title()},
                                 {"reason", change.reason}});
  }
  json["latency"] = latency_json(comparison, 0);
  json["sizes"] = sizes_json(comparison, 0);
  json["environment"] = environment_json(comparison);
  return json_document("comparison", json, kComparisonSchema);
}

Json changes_json(const RunComparison& comparison) {
  Json lists = Json::array();
  for (const NamedList& named : kLists) {
    const std::vector<StatusChange>& changes = comparison.*named.list;
    if (changes.empty()) continue;
    const std::vector<ChangeGroup> groups = by_cause(changes);
    Json causes = Json::array();
    for (const ChangeGroup& group : first_of(groups, kListInReport)) causes.push_back(cause_json(group));
    lists.push_back({{"list", named.key},
                     {"title", named.title},
                     {"worse", named.is_worse},
                     {"count", changes.size()},
                     {"causes_total", groups.size()},
                     {"causes", causes}});
  }
  return {{"before", head_json(comparison.before)},
          {"summary", comparison_line(comparison)},
          {"unchanged", comparison.unchanged},
          {"still_failing", comparison.still_failing},
          {"drawn_anew", comparison.drawn_anew},
          {"lists", lists},
          {"latency", latency_json(comparison, kListInReport)},
          {"sizes_total", comparison.sizes.size()},
          {"sizes", sizes_json(comparison, kListInReport)},
          {"environment", environment_json(comparison)}};
}

}  // namespace qcts
