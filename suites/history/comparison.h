// SPDX-License-Identifier: BSD-3-Clause
// `qcts compare`: what changed from one run to another, or to the last one in a history.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/report.h"
#include "suites/base/terminal.h"
#include "suites/history/latency_changes.h"
#include "suites/history/recorded_run.h"

namespace qcts {

inline constexpr int kComparisonSchema = 2;

struct StatusChange {
  std::string id;
  std::optional<Status> before, after;  // nullopt: the run does not have the case
  std::string reason;  // of the verdict now, or of the one before if it is gone or passes now
};

struct BytesChange {
  std::string id, measure;
  uint64_t before = 0, after = 0;
};

// A property of the suite, the plan, the machine or a provider.
struct FieldChange {
  std::string field, before, after;
};

struct ComparedHead {
  std::string name, started, commit, plan, machine_class;
  uint64_t cases = 0;
};

struct RunComparison {
  ComparedHead before, after;
  std::string not_comparable;  // why; then everything below but `environment` is empty
  std::vector<StatusChange> newly_failing, gone, newly_not_supported, newly_inconclusive;
  std::vector<StatusChange> fixed, newly_supported, added;
  uint64_t still_failing = 0, unchanged = 0;
  PaceComparison latency;
  bool latency_left_out = false;  // as asked
  std::vector<BytesChange> sizes;
  std::vector<FieldChange> environment;
};

struct CompareOptions {
  bool latency = true;
};

RunComparison compare(const RecordedRun& before, const RecordedRun& after, const CompareOptions& options = {},
                      const PaceHistory& history = {});

// Failed if anything fails newly, is gone, is newly not supported or slower; inconclusive if only that is in
// question; nothing_proved if the runs are not comparable; otherwise conformant.
Outcome outcome_of(const RunComparison& comparison);

// Returns the reason why two runs cannot be compared: another plan, selection, shard, or, where both have
// latency and `options` wants it, machine class or number of threads; "" if they can.
std::string why_not_comparable(const RecordedRun& before, const RecordedRun& after,
                               const CompareOptions& options);

nlohmann::ordered_json comparison_json(const RunComparison& comparison);  // reports/comparison.schema.json
// `lines`: of each list at most so many; 0: all.
std::string comparison_text(const RunComparison& comparison, size_t lines, const Screen& screen = {});
std::string comparison_markdown(const RunComparison& comparison, size_t lines);

}  // namespace qcts
