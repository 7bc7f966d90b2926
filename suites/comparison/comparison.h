// SPDX-License-Identifier: BSD-3-Clause
// Lists the changes from one run to another: for `qcts compare`, report.json, the page and summary.md alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/report.h"
#include "suites/base/terminal.h"
#include "suites/comparison/latency_changes.h"
#include "suites/comparison/recorded_run.h"

namespace qcts {

inline constexpr int kComparisonSchema = 2;

struct StatusChange {
  std::string id;
  std::optional<Status> before, after;  // nullopt: the run lacks the case
  std::string reason;  // reason of the later verdict, or of the earlier one if the case is gone or passes now
  // failure_title() of the reason, or "" if there is no reason. Cases with the same title are reported
  // together.
  std::string title() const;
};

// The changes of one list that have one cause.
struct ChangeGroup {
  std::optional<Status> before, after;
  std::string title;             // StatusChange::title() of all of them
  std::string reason;            // of the first
  std::vector<std::string> ids;  // in the order of the list
};
// Groups changes by their statuses and title. The largest group comes first.
std::vector<ChangeGroup> by_cause(const std::vector<StatusChange>& changes);

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
  std::string not_comparable;  // the reason; if set, everything below except `environment` is empty
  std::vector<StatusChange> newly_failing, gone, newly_not_supported, newly_inconclusive, newly_robustness;
  std::vector<StatusChange> fixed, newly_supported, added;
  uint64_t still_failing = 0, unchanged = 0;
  uint64_t drawn_anew = 0;  // cases that pass, and that an earlier run with another seed asked something else
  PaceComparison latency;
  bool latency_left_out = false;  // true if the user asked to leave latency out
  std::vector<BytesChange> sizes;
  std::vector<FieldChange> environment;
};

struct CompareOptions {
  bool latency = true;
};

RunComparison compare(const RecordedRun& before, const RecordedRun& after, const CompareOptions& options = {},
                      const PaceHistory& history = {});

// Returns failed if a case newly fails, is gone, is newly not supported or is slower.
// Otherwise returns inconclusive if a case is newly inconclusive or a change of latency is undecided.
// Otherwise returns conformant. Returns nothing_proved if the runs are not comparable.
Outcome outcome_of(const RunComparison& comparison);

// Returns the reason why two runs cannot be compared: a different plan, selection or shard.
// If both have latency and `options` asks for it, a different machine class or number of threads is a reason
// too. Returns "" if the runs can be compared.
std::string why_not_comparable(const RecordedRun& before, const RecordedRun& after,
                               const CompareOptions& options);

// "WORSE: 3 newly failing, 1 slower"
std::string comparison_line(const RunComparison& comparison);

nlohmann::ordered_json comparison_json(const RunComparison& comparison);  // reports/comparison.schema.json
// Returns the comparison as the `changes` of reports/report.schema.json: each list by cause with its first
// ids, and the first entries of the others.
nlohmann::ordered_json changes_json(const RunComparison& comparison);
// At most `lines` causes (or entries) are shown per list; 0 shows all of them, with every case id.
std::string comparison_text(const RunComparison& comparison, size_t lines, const Screen& screen = {});
std::string comparison_markdown(const RunComparison& comparison, size_t lines);

}  // namespace qcts
