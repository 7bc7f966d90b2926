// SPDX-License-Identifier: BSD-3-Clause
// Makes the report from a run's head and verdicts, whether the run is new, resumed or merged.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "suites/comparison/comparison.h"
#include "suites/record/run_record.h"

namespace qcts {

// Returns the SHA-256 of the folders' manifests, in order. The manifests contain the SHA-256 of every file.
std::string fixtures_sha256(const std::vector<std::filesystem::path>& folders);
std::string mustpass_sha256(const std::vector<std::string>& ids);

// Returns a report that lacks only the verdicts. Makes the report from the head and the goldens.
// The lists of this installation are added: mustpass, floor, waivers and schemes.
RunReport report_from(const RunHead& head, const Fixtures& fixtures);

// Sorts the verdicts and fills what is counted from them.
void count(RunReport& report);
// Returns report.json of a counted report. For a selection, only the static rows of what ran are kept.
nlohmann::ordered_json counted_json(RunReport& report);

struct ReportOptions {
  bool print_json = false;  // print JSON instead of the summary
  JunitForm junit = JunitForm::cells;
  size_t durations = 0;  // the slowest cases that the summary names
};

// Sorts and counts the verdicts.
// Compares the verdicts with out/before.jsonl.gz if that has the same plan and selection.
// Writes report.json, junit.xml, report.html and summary.md to `out` and compresses the record there.
// Then prints the summary or the JSON.
Outcome write_report(RunReport& report, const std::filesystem::path& out, const ReportOptions& options);
// Prints the summary of a run that was stopped, whose record in `out` stays as it is.
Outcome print_stopped(RunReport& report, const std::filesystem::path& out, const ReportOptions& options);
// The run that a report is compared with from now on.
struct RunBefore {
  RecordedRun run;
  PaceHistory nights;    // of its history; empty if there is none
  bool replaces = true;  // false: only if report.json names no such run yet
};
// Writes report.html and summary.md from the report.json and the record in `folder`, which have to agree
// (recounted_report.h). `statement` says who signed what (page.h).
// Adds sections for a load.json, a generate.json, a block.json and a trend.json there.
// Writes the comparison with `before` into report.json too.
// Throws std::runtime_error, which names the file.
void write_page(const std::filesystem::path& folder, const std::string& statement,
                const std::optional<RunBefore>& before = {});
// Removes the reports of an earlier run.
void remove_reports(const std::filesystem::path& out);
// Removes the reports of an earlier run. Keeps the record of a finished one as before.jsonl.gz, and a
// statement about it as before.statement.json.
void start_reports(const std::filesystem::path& out);

}  // namespace qcts
