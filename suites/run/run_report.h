// SPDX-License-Identifier: BSD-3-Clause
// From the head of a run and its verdicts to the report: the same for a run, a resumed one and a merged one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "suites/run/run_record.h"

namespace qcts {

// SHA-256 over the manifests of the folders, in order: they hold the SHA-256 of every file.
std::string fixtures_sha256(const std::vector<std::filesystem::path>& folders);
std::string mustpass_sha256(const std::vector<std::string>& ids);

// Everything that the head, this installation's lists (mustpass, floor, waivers, schemes) and the goldens
// say.
RunReport report_from(const RunHead& head, const Fixtures& fixtures);
// Sorts and counts, writes report.json and junit.xml to `out`, prints the summary, or the JSON.
Outcome write_report(RunReport& report, const std::filesystem::path& out, bool print_json);
// Those of an earlier run.
void remove_reports(const std::filesystem::path& out);

}  // namespace qcts
