// SPDX-License-Identifier: BSD-3-Clause
// Makes the report from a run's head and verdicts, whether the run is new, resumed or merged.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "reports/changes.h"
#include "suites/run/run_record.h"

namespace qcts {

// Returns the SHA-256 of the folders' manifests, in order. The manifests contain the SHA-256 of every file.
std::string fixtures_sha256(const std::vector<std::filesystem::path>& folders);
std::string mustpass_sha256(const std::vector<std::string>& ids);

// Returns a report with everything but the verdicts: from the head, this installation's lists (mustpass,
// floor, waivers, schemes) and the goldens.
RunReport report_from(const RunHead& head, const Fixtures& fixtures);
struct ReportOptions {
  bool print_json = false;  // instead of the summary
  JunitForm junit = JunitForm::cells;
};

// Sorts and counts the verdicts, compares them with out/before.jsonl.gz if that has the same plan and
// selection, writes report.json, junit.xml, report.html and summary.md to `out`, compresses the record there,
// and prints the summary or the JSON.
Outcome write_report(RunReport& report, const std::filesystem::path& out, const ReportOptions& options);
// Writes report.html and summary.md from the report.json and the record in `folder`; load.json, generate.json
// and trend.json there add their sections. `before`: the run that this one is compared with from now on, in
// report.json too; its waivers are those of the report. Unless `replace`, only if report.json names no such
// run. Throws std::runtime_error naming the file.
void write_page(const std::filesystem::path& folder, const std::optional<RunBefore>& before = {},
                bool replace = true);
// Removes the reports of an earlier run.
void remove_reports(const std::filesystem::path& out);
// Does that for a new run, and keeps the record of a finished one as before.jsonl.gz.
void start_reports(const std::filesystem::path& out);

}  // namespace qcts
