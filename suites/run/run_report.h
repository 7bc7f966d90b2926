// SPDX-License-Identifier: BSD-3-Clause
// Makes the report from a run's head and verdicts, whether the run is new, resumed or merged.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "suites/run/run_record.h"

namespace qcts {

// Returns the SHA-256 of the folders' manifests, in order. The manifests contain the SHA-256 of every file.
std::string fixtures_sha256(const std::vector<std::filesystem::path>& folders);
std::string mustpass_sha256(const std::vector<std::string>& ids);

// Returns a report with everything but the verdicts: from the head, this installation's lists (mustpass,
// floor, waivers, schemes) and the goldens.
RunReport report_from(const RunHead& head, const Fixtures& fixtures);
// Sorts and counts the verdicts, writes report.json and junit.xml to `out`, and prints the summary or the
// JSON.
Outcome write_report(RunReport& report, const std::filesystem::path& out, bool print_json);
// Removes the reports of an earlier run.
void remove_reports(const std::filesystem::path& out);

}  // namespace qcts
