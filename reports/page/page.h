// SPDX-License-Identifier: BSD-3-Clause
// Writes report.html, one file for people. It needs no network and no other file.
#pragma once

#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

// The verdict of a report.json, in words.
struct Headline {
  std::string tone;      // "pass", "warn" or "fail"
  std::string text;      // "Conformant"
  std::string sentence;  // the reason for the verdict
};
Headline headline_of(const nlohmann::ordered_json& report);

inline constexpr const char* kNoStatement = "no statement: not signed";

// Returns the page. `report` is the result of report_json().
// `verdicts` holds all verdicts of the run, for the list of cases; if it is empty, so is that list.
// `statement` says in one line who stated the run and who signed it, or kNoStatement.
// `measured` holds load.json, generate.json, block.json and trend.json from the folder of the report, by
// name. All texts of these arguments are escaped.
std::string page_html(const nlohmann::ordered_json& report, const std::vector<Verdict>& verdicts,
                      const nlohmann::ordered_json& measured, const std::string& statement);

// Returns Markdown for a merge request: verdict, counts, changes and failure groups.
std::string summary_markdown(const nlohmann::ordered_json& report);

}  // namespace qcts
