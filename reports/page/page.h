// SPDX-License-Identifier: BSD-3-Clause
// report.html: one file for people, which needs no network and no other file.
#pragma once

#include <string>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

// The verdict of a report.json in words.
struct Headline {
  std::string tone;      // "pass", "warn" or "fail"
  std::string text;      // "Conformant"
  std::string sentence;  // why
};
Headline headline_of(const nlohmann::ordered_json& report);

// `report`: of report_json(). `verdicts`: all of the run, for the list of cases; none leave that list empty.
// `measured`: the load.json, generate.json and trend.json beside the report, by name. All texts in them are
// escaped.
std::string page_html(const nlohmann::ordered_json& report, const std::vector<Verdict>& verdicts,
                      const nlohmann::ordered_json& measured);

// Markdown for a merge request: verdict, counts, changes and failure groups.
std::string summary_markdown(const nlohmann::ordered_json& report);

}  // namespace qcts
