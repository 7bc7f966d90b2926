// SPDX-License-Identifier: BSD-3-Clause
// Implements `qcts run`, which judges providers on the cases of a plan and writes reports.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"
#include "suites/base/memory.h"
#include "suites/base/run_error.h"
#include "suites/cases/plan.h"
#include "suites/cases/selection/selection.h"
#include "suites/host/cage.h"

namespace qcts {

struct RunRequest {
  std::string plan = kDefaultPlan;
  std::optional<int> device = {};    // the GPU on which kernels run; none: the processor
  std::filesystem::path model = {};  // a config.json, whose layers are asked too; empty: none
  Selection selection;
  // The words "qcts", a provider's name, or a path. An empty list stands for all providers that are found.
  std::vector<std::string> providers;
  // Providers that are judged as well, but whose latency never gates.
  // If `providers` is empty, the plug-ins that are found are peers too.
  std::vector<std::string> peers;
  std::vector<std::filesystem::path> fixtures;  // in addition to the repository's own
  std::filesystem::path out = "out";
  bool gate_latency = false, json = false, progress = true, list = false, list_inputs = false;
  JunitForm junit = JunitForm::cells;
  bool resume = false;   // continue the record in `out` if it belongs to the same run
  bool restart = false;  // rename an unfinished record in `out` to unfinished.jsonl
  size_t fail_fast = 0;  // stop after this many failures; 0: judge all cases
  // Start no case after this many seconds, ask the most valuable ones first, and report what was judged.
  std::optional<double> budget_s = {};
  unsigned repeat = 1;   // judge each case so often; the first verdict other than a pass counts
  size_t durations = 0;  // name this many of the slowest cases
  std::optional<double> case_timeout_s = {};  // in place of the plan's
  bool keep_going = false;                    // also with a provider that timed out several times in a row
  // Memory limit of a worker, in addition to its memory after loading the provider.
  uint64_t memory_limit_bytes = kDefaultMemoryLimitBytes;
  Isolation isolation = Isolation::required;
  uint64_t seed = 0;
  // The file with the secret seed and the SHA-256 of its bytes (secret_seed.h); "" if the seed is not secret.
  std::filesystem::path seed_file;
  std::string seed_sha256;
  uint32_t threads = 1;
  unsigned jobs = 0;  // 0: default_jobs()
  std::string commit;
  std::vector<std::string> arguments;  // the command line, for the report
};

// Judges the cases and prints the summary. Throws RunError.
// Writes run.jsonl.gz, report.json, junit.xml, report.html and summary.md to `out`.
// A run that --fail-fast stops leaves its unfinished record there, and no reports.
Outcome run(const RunRequest& options);

}  // namespace qcts
