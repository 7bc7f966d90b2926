// SPDX-License-Identifier: BSD-3-Clause
#include "suites/comparison/comparison.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

ComparedHead compared_head(const RecordedRun& run) {
  return {run.name,      run.head.started_utc,       run.head.suite_commit,
          run.head.plan, machine_class_of(run.head), run.cases.size()};
}

std::string text_of_field(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "none" : value.dump();
}

void add_field(std::vector<FieldChange>& changes, const std::string& field, const Json& before,
               const Json& after) {
  if (before != after) changes.push_back({field, text_of_field(before), text_of_field(after)});
}

// Names the elements that only one of two lists has, such as processor features.
void add_list(std::vector<FieldChange>& changes, const std::string& field, const Json& before,
              const Json& after) {
  const auto only_in = [](const Json& one, const Json& other) {
    std::string words;
    for (const Json& word : one)
      if (std::find(other.begin(), other.end(), word) == other.end())
        words += (words.empty() ? "" : " ") + text_of_field(word);
    return words.empty() ? std::string("nothing else") : words;
  };
  if (before != after) changes.push_back({field, only_in(before, after), only_in(after, before)});
}

Json provider_named(const Json& providers, const std::string& name) {
  for (const Json& provider : providers)
    if (provider.value("name", "") == name) return provider;
  return nullptr;
}

void add_providers(std::vector<FieldChange>& changes, const Json& before, const Json& after) {
  std::set<std::string> names;
  for (const Json* list : {&before, &after})
    for (const Json& provider : *list) names.insert(provider.value("name", ""));
  for (const std::string& name : names) {
    const Json one = provider_named(before, name), other = provider_named(after, name);
    if (one.is_null() || other.is_null()) {
      changes.push_back(
          {"provider " + name, one.is_null() ? "absent" : "present", other.is_null() ? "absent" : "present"});
      continue;
    }
    for (const char* field : {"version", "sha256"})
      add_field(changes, "provider " + name + " " + field, one.value(field, Json()),
                other.value(field, Json()));
  }
}

std::vector<FieldChange> environment_changes(const RunHead& before, const RunHead& after) {
  std::vector<FieldChange> changes;
  const Json a = to_json(before), b = to_json(after);
  for (const char* field :
       {"suite_version", "suite_commit", "plan_sha256", "fixtures_sha256", "mustpass_sha256", "seed",
        "seed_sha256", "threads", "memory_limit_bytes", "gate_latency", "infrastructure"})
    add_field(changes, field, a[field], b[field]);
  std::set<std::string> names;
  for (const Json* environment : {&before.environment, &after.environment})
    for (const auto& [name, value] : environment->items()) names.insert(name);
  for (const std::string& name : names) {
    const Json one = before.environment.value(name, Json()), other = after.environment.value(name, Json());
    if (one.is_array() && other.is_array())
      add_list(changes, name, one, other);
    else
      add_field(changes, name, one, other);
  }
  add_providers(changes, before.providers, after.providers);
  return changes;
}

bool has_latency(const RecordedRun& run) {
  return std::any_of(run.cases.begin(), run.cases.end(),
                     [](const CaseState& c) { return c.pace.has_value(); });
}

bool was_cut_by_budget(const RunHead& head) {
  return std::ranges::any_of(head.selection,
                             [](const std::string& words) { return words.starts_with("--budget "); });
}

void add_sizes(const CaseState& before, const CaseState& after, std::vector<BytesChange>& sizes) {
  for (const auto& [measure, bytes] : after.bytes) {
    const auto old = before.bytes.find(measure);
    if (old != before.bytes.end() && old->second != bytes)
      sizes.push_back({after.id, measure, old->second, bytes});
  }
}

// Files a case of the run now under its change.
void add_case(const CaseState* before, const CaseState& now, RunComparison& result) {
  const std::optional<Status> old = before ? std::optional(before->status) : std::nullopt;
  StatusChange change{now.id, old, now.status, now.reason};
  if (is_bad(now.status)) {
    if (old && is_bad(*old))
      ++result.still_failing;
    else
      result.newly_failing.push_back(std::move(change));
  } else if (!old) {
    result.added.push_back(std::move(change));
  } else if (*old == now.status) {
    ++result.unchanged;
  } else if (now.status == Status::not_supported) {
    result.newly_not_supported.push_back(std::move(change));
  } else if (now.status == Status::inconclusive) {
    result.newly_inconclusive.push_back(std::move(change));
  } else if (now.status == Status::robustness) {
    result.newly_robustness.push_back(std::move(change));
  } else {
    change.reason = before->reason;
    (*old == Status::not_supported ? result.newly_supported : result.fixed).push_back(std::move(change));
  }
}

void compare_cases(const RecordedRun& before, const RecordedRun& after, RunComparison& result) {
  auto old = before.cases.begin();
  // Another seed draws other problems: what they were asked before says nothing about today's.
  const bool draws_anew =
      before.head.seed != after.head.seed || before.head.seed_sha256 != after.head.seed_sha256;
  const auto is_anew = [&](const CaseState& c) {
    const std::optional<CaseId> id = parse_case_id(c.id);
    return draws_anew && id && is_drawn(*id);
  };
  // A case that one of the runs had no time for is neither new nor gone.
  const bool had_all_time = !was_cut_by_budget(before.head) && !was_cut_by_budget(after.head);
  const auto gone = [&](const CaseState& c) {
    if (is_anew(c) || !had_all_time) return;
    result.gone.push_back({c.id, c.status, std::nullopt, c.reason});
  };
  for (const CaseState& now : after.cases) {
    for (; old != before.cases.end() && old->id < now.id; ++old) gone(*old);
    const CaseState* same = old != before.cases.end() && old->id == now.id ? &*old++ : nullptr;
    if (same == nullptr && !had_all_time && !is_bad(now.status)) continue;
    if (is_anew(now) && !is_bad(now.status)) {
      ++result.drawn_anew;
      continue;
    }
    add_case(is_anew(now) ? nullptr : same, now, result);
    if (same != nullptr) add_sizes(*same, now, result.sizes);
  }
  for (; old != before.cases.end(); ++old) gone(*old);
}

}  // namespace

std::string why_not_comparable(const RecordedRun& before, const RecordedRun& after,
                               const CompareOptions& options) {
  const RunHead &a = before.head, &b = after.head;
  const auto differ = [](const std::string& what, const std::string& one, const std::string& other) {
    return "another " + what + ": " + one + " before, " + other + " now";
  };
  const auto or_none = [](const std::string& words) {
    return words.empty() ? std::string("everything") : words;
  };
  const auto shard = [](const RunHead& head) {
    return std::to_string(head.shard) + "/" + std::to_string(head.shards);
  };
  if (a.plan != b.plan) return differ("plan", a.plan, b.plan);
  if (selection_of(a) != selection_of(b))
    return differ("selection", or_none(selection_of(a)), or_none(selection_of(b)));
  if (shard(a) != shard(b))
    return differ("shard", shard(a), shard(b)) + " (qcts merge joins the shards of a run)";
  if (!options.latency || !has_latency(before) || !has_latency(after)) return {};
  constexpr const char* kHint = "; latency cannot be compared (--no-latency compares the rest)";
  if (machine_class_of(a) != machine_class_of(b))
    return differ("machine class", machine_class_of(a), machine_class_of(b)) + kHint;
  if (a.threads != b.threads)
    return differ("number of threads", std::to_string(a.threads), std::to_string(b.threads)) + kHint;
  return {};
}

RunComparison compare(const RecordedRun& before, const RecordedRun& after, const CompareOptions& options,
                      const PaceHistory& history) {
  RunComparison result;
  result.before = compared_head(before);
  result.after = compared_head(after);
  result.environment = environment_changes(before.head, after.head);
  result.not_comparable = why_not_comparable(before, after, options);
  result.latency_left_out = !options.latency;
  if (!result.not_comparable.empty()) return result;
  compare_cases(before, after, result);
  if (options.latency) result.latency = compare_paces(before, after, history);
  return result;
}

std::vector<ChangeGroup> by_cause(const std::vector<StatusChange>& changes) {
  using Key = std::tuple<std::optional<Status>, std::optional<Status>, std::string>;
  std::map<Key, size_t> place;
  std::vector<ChangeGroup> groups;
  for (const StatusChange& change : changes) {
    const auto [at, fresh] = place.emplace(Key{change.before, change.after, change.title()}, groups.size());
    if (fresh)
      groups.push_back({change.before, change.after, std::get<std::string>(at->first), change.reason, {}});
    groups[at->second].ids.push_back(change.id);
  }
  std::ranges::stable_sort(groups, std::ranges::greater{},
                           [](const ChangeGroup& group) { return group.ids.size(); });
  return groups;
}

Outcome outcome_of(const RunComparison& comparison) {
  if (!comparison.not_comparable.empty()) return Outcome::nothing_proved;
  if (!comparison.newly_failing.empty() || !comparison.gone.empty() ||
      !comparison.newly_not_supported.empty() || !comparison.latency.slower.empty())
    return Outcome::failed;
  if (!comparison.newly_inconclusive.empty() || !comparison.latency.undecided.empty())
    return Outcome::inconclusive;
  return Outcome::conformant;
}

}  // namespace qcts
