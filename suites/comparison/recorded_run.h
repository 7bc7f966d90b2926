// SPDX-License-Identifier: BSD-3-Clause
// A finished run as comparisons and the history see it.
// Each verdict is reduced to the parts that can change from one night to the next.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "suites/record/run_record.h"
#include "suites/timing/stats.h"

namespace qcts {

// One latency measurement. An interval that was not measured is [0, +inf].
struct Pace {
  Interval us;          // time of the fastest call
  Interval of_roof;     // fastest call over the roof's fastest call: 1.25 is a share of 0.8
  bool trusted = true;  // true if the kernel did not differ from itself and the canary kept its speed
  // Lower quartile of the calls that the record holds. Its value is 0 if there are fewer than 8.
  Interval quartile_us = {};

  bool has_roof() const { return of_roof.value > 0; }
};

struct CaseState {
  std::string id;  // full id
  Status status = Status::internal;
  std::string reason;
  std::map<std::string, uint64_t>
      bytes;                 // measures in bytes: those of kind size, or a latency case's prepared_bytes
  std::optional<Pace> pace;  // set for latency cases that were timed
};

struct RecordedRun {
  std::string name;  // the name that the user gave
  RunHead head;
  std::vector<CaseState> cases;  // sorted by id
  LatencyTrust latency_trust;
};

CaseState case_state(const Verdict& verdict);
RecordedRun recorded_run(std::string name, const RunRecord& record);

// Reads the record in a folder, or a record file.
// Throws UsageError if there is no record or the record is damaged.
// Throws RunError (nothing_proved) if the run is unfinished or has no case.
RecordedRun read_recorded_run(const std::filesystem::path& folder_or_file);

// Returns true for a failure, a death, or too little evidence.
bool is_bad(Status status);

// Returns machine_class() of the machine that a record's head describes.
std::string machine_class_of(const RunHead& head);
// Returns the arguments that narrowed the run, and the names of the providers if they narrowed it too.
// Leaves out paths of plans and of providers, so that two versions of a provider can be compared, and the
// budget, because only what both runs had time for is compared.
std::string selection_of(const RunHead& head);

}  // namespace qcts
