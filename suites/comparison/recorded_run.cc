// SPDX-License-Identifier: BSD-3-Clause
#include "suites/comparison/recorded_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "suites/base/run_error.h"
#include "suites/judge/latency/latency_measures.h"
#include "suites/timing/targets.h"

namespace qcts {
namespace {

namespace fs = std::filesystem;

Interval interval_of(const Measure* measure) {
  Interval interval{0, 0, std::numeric_limits<double>::infinity(), 0};
  if (measure == nullptr || !(measure->value > 0)) return interval;
  interval.value = measure->value;
  interval.samples = static_cast<size_t>(measure->samples.value_or(0));
  if (measure->low && measure->high && *measure->low > 0 && std::isfinite(*measure->high)) {
    interval.low = *measure->low;
    interval.high = *measure->high;
  }
  return interval;
}

// The interval (95 %) reaches to the order statistics that the binomial distribution of their ranks gives.
Interval lower_quartile(std::vector<double> us) {
  constexpr size_t kMinSamples = 8;
  std::erase_if(us, [](double v) { return std::isnan(v); });
  if (us.size() < kMinSamples) return {0, 0, std::numeric_limits<double>::infinity(), 0};
  std::ranges::sort(us);
  const double count = static_cast<double>(us.size()), place = std::floor(count / 4);
  const double arm = std::ceil(kNormal95 * std::sqrt(count * 0.25 * 0.75));
  const auto at = [&us](double rank) {
    return us[static_cast<size_t>(std::clamp(rank, 0.0, static_cast<double>(us.size() - 1)))];
  };
  return {at(place), at(place - arm), at(place + arm), us.size()};
}

std::optional<Pace> pace_of(const Verdict& verdict) {
  const Measure* us = find_measure(verdict, "fastest_us");
  if (verdict.case_id.kind != Kind::latency || us == nullptr) return std::nullopt;
  Pace pace;
  pace.us = interval_of(us);
  pace.of_roof = interval_of(find_measure(verdict, "fastest_of_roof"));
  const Measure *alarm = find_measure(verdict, kAlarmMeasure), *drift = find_measure(verdict, "canary_drift");
  const bool drifted = drift != nullptr && std::fabs(std::log(drift->value)) > std::log1p(kCanaryMargin);
  pace.trusted = (alarm == nullptr || alarm->value == 0) && !drifted;
  pace.quartile_us = lower_quartile(verdict.samples_us);
  return pace;
}

void check_finished(const RecordedRun& run, bool truncated) {
  if (truncated || run.cases.size() != run.head.cases)
    throw RunError(Outcome::nothing_proved, run.name + " is unfinished: " + std::to_string(run.cases.size()) +
                                                " of " + std::to_string(run.head.cases) +
                                                " cases (qcts run --resume finishes it)");
  if (run.cases.empty()) throw RunError(Outcome::nothing_proved, run.name + " has no case");
}

}  // namespace

CaseState case_state(const Verdict& verdict) {
  CaseState state{verdict.full_id(), verdict.status, verdict.reason, {}, pace_of(verdict)};
  for (const Measure& measure : verdict.measures) {
    const bool is_size = verdict.case_id.kind == Kind::size || measure.name == "prepared_bytes";
    if (is_size && measure.unit == "bytes" && measure.value >= 0)
      state.bytes[measure.name] = static_cast<uint64_t>(measure.value);
  }
  return state;
}

RecordedRun recorded_run(std::string name, const RunRecord& record) {
  RecordedRun run{std::move(name), record.head, {}, latency_trust(record.verdicts)};
  run.cases.reserve(record.verdicts.size());
  for (const Verdict& verdict : record.verdicts) run.cases.push_back(case_state(verdict));
  std::sort(run.cases.begin(), run.cases.end(),
            [](const CaseState& a, const CaseState& b) { return a.id < b.id; });
  return run;
}

RecordedRun read_recorded_run(const fs::path& given) {
  const fs::path file = record_of(given);
  if (!fs::is_regular_file(file))
    throw UsageError(given.string() + ": there is no record of a run (run.jsonl or run.jsonl.gz)");
  RecordedRun run;
  bool truncated = false;
  try {
    const RunRecord record = read_run_record(file);
    run = recorded_run(given.string(), record);
    truncated = record.truncated;
  } catch (const std::runtime_error& error) {
    throw UsageError(error.what());
  }
  check_finished(run, truncated);
  return run;
}

bool is_bad(Status status) {
  return status != Status::pass && status != Status::waived && status != Status::not_supported &&
         status != Status::inconclusive && status != Status::robustness;
}

std::string machine_class_of(const RunHead& head) {
  Machine machine;
  try {
    machine.cpu_model = head.environment.at("cpu_model");
    machine.cpu_family = head.environment.at("cpu_family");
    machine.features = head.environment.at("features").get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw UsageError(std::string("the record's environment does not describe a machine: ") + error.what());
  }
  return machine_class(machine);
}

std::string selection_of(const RunHead& head) {
  std::string joined;
  const auto add = [&](const std::string& words) { joined += (joined.empty() ? "" : " ") + words; };
  bool narrowed = false;
  for (const std::string& words : head.selection) {
    const bool names_provider = words.starts_with("--provider ");
    narrowed = narrowed || names_provider;
    if (!names_provider && !words.starts_with("--plan ") && !words.starts_with("--budget ")) add(words);
  }
  if (!narrowed) return joined;
  std::vector<std::string> names;
  for (const auto& provider : head.providers) names.push_back(provider.value("name", ""));
  std::sort(names.begin(), names.end());
  add("providers");
  for (const std::string& name : names) add(name);
  return joined;
}

}  // namespace qcts
