// SPDX-License-Identifier: BSD-3-Clause
#include "reports/page/page.h"

namespace qcts {
namespace {

constexpr size_t kGroupsShown = 10, kChangesShown = 10;

// A cell of a table ends at a bar or a line feed; a reader would take other signs for HTML or emphasis.
std::string cell_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' || c == '\r')
      out += ' ';
    else if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else {
      if (std::string_view("|*_`[]\\").find(c) != std::string_view::npos) out += '\\';
      out += c;
    }
  }
  return out;
}

// Text in a code span: the fence is longer than any run of backticks in it.
std::string code_text(std::string text) {
  std::string fence = "`";
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  while (text.find(fence) != text.npos) fence += '`';
  const std::string space = fence.size() > 1 ? " " : "";
  return fence + space + text + space + fence;
}

// A hypothesis says it all; otherwise the diagnosis says what was seen.
std::string diagnosis_line(const nlohmann::ordered_json& group) {
  const std::string diagnosis = group.at("diagnosis"), hypothesis = group.at("hypothesis");
  return hypothesis.empty() && !diagnosis.empty() ? "\n  " + cell_text(diagnosis) : "";
}

}  // namespace

std::string summary_markdown(const nlohmann::ordered_json& report) {
  const Headline headline = headline_of(report);
  std::string text = "# qcts: " + headline.text + "\n\n" + cell_text(headline.sentence) + "\n";
  for (const auto& line : report.at("run").at("infrastructure")) text += "\n- " + cell_text(line) + "\n";
  text += "\n| status | verdicts |\n|---|---:|\n";
  for (const auto& [status, count] : report.at("counts").at("by_status").items())
    if (count != 0) text += "| " + status + " | " + std::to_string(count.get<uint64_t>()) + " |\n";
  if (const auto& changes = report.at("changes"); changes.is_object() && !changes.at("turned").empty()) {
    text += "\n## Since the run of " + changes.at("before").at("started").get<std::string>() +
            "\n\n| before | now | verdicts | first |\n|---|---|---:|---|\n";
    size_t shown = 0;
    for (const auto& change : changes.at("turned"))
      if (shown++ < kChangesShown)
        text += "| " + change.at("from").get<std::string>() + " | " + change.at("to").get<std::string>() +
                " | " + std::to_string(change.at("count").get<uint64_t>()) + " | " +
                code_text(change.at("cases").at(0)) + " |\n";
  }
  size_t shown = 0;
  for (const auto& group : report.at("groups")) {
    if (!group.at("blocks").get<bool>()) continue;
    if (shown == 0) text += "\n## Failures\n";
    if (shown++ == kGroupsShown) break;
    text += "\n- **" + std::to_string(group.at("count").get<uint64_t>()) + " " +
            group.at("status").get<std::string>() + "**, " + cell_text(group.at("provider")) + ": " +
            cell_text(group.at("title")) + diagnosis_line(group) + "\n  " + code_text(group.at("rerun")) +
            "\n";
  }
  if (shown > kGroupsShown) text += "\nFurther groups are in report.html.\n";
  return text;
}

}  // namespace qcts
