// SPDX-License-Identifier: BSD-3-Clause
// Implements `qcts merge`, which joins the shards of one run into one report.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "reports/report.h"
#include "suites/record/run_record.h"

namespace qcts {

struct MergePart {
  std::string name;  // the name that the user gave
  RunRecord record;
};
// Checks that the parts form one complete run. Throws UsageError if they belong to different runs.
// Throws UsageError if a shard is missing, duplicate or unfinished.
// Throws UsageError if a case is judged twice or never.
void check_parts(const std::vector<MergePart>& parts);

struct MergeRequest {
  std::vector<std::filesystem::path> parts;     // folders that contain a record, or record files
  std::vector<std::filesystem::path> fixtures;  // the shards' --fixtures, at their paths on this machine
  std::filesystem::path out = "out";
  bool json = false;
  JunitForm junit = JunitForm::cells;
  std::vector<std::string> arguments;  // the command line, for the report
};

// Writes the files that the undivided run would have written, and prints its summary.
// The files are run.jsonl.gz, report.json, junit.xml, report.html and summary.md in `out`.
// Throws UsageError as check_parts() does.
// Throws UsageError if the parts come from a different installation.
// That is a difference in version, plan, fixtures, selection, processor, providers, or their hashes.
Outcome merge(const MergeRequest& request);

}  // namespace qcts
