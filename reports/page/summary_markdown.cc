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

std::string times_text(const nlohmann::ordered_json& ratio) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g times the time", ratio.is_number() ? ratio.get<double>() : 0.0);
  return ratio.is_number() ? text : "the ratio is not known";
}

// The worse lists by cause, and what is slower.
std::string changes_text(const nlohmann::ordered_json& changes) {
  std::string text = "\n## Since the run of " + changes.at("before").at("started").get<std::string>() +
                     "\n\n" + cell_text(changes.at("summary")) + "\n";
  size_t shown = 0;
  for (const auto& list : changes.at("lists"))
    for (const auto& cause : list.at("causes")) {
      if (!list.at("worse").get<bool>() || shown == kChangesShown) continue;
      if (shown++ == 0) text += "\n| change | cases | cause | first |\n|---|---:|---|---|\n";
      text += "| " + cell_text(list.at("title")) + " | " + std::to_string(cause.at("count").get<uint64_t>()) +
              " | " + cell_text(cause.at("title")) + " | " + code_text(cause.at("cases").at(0)) + " |\n";
    }
  shown = 0;
  for (const auto& slower : changes.at("latency").at("slower"))
    if (shown++ < kChangesShown)
      text += (shown == 1 ? "\n- " : "- ") + std::string("slower: ") + code_text(slower.at("id")) + ", " +
              times_text(slower.at("ratio").at("value")) + "\n";
  return text;
}

}  // namespace

std::string summary_markdown(const nlohmann::ordered_json& report) {
  const Headline headline = headline_of(report);
  std::string text = "# qcts: " + headline.text + "\n\n" + cell_text(headline.sentence) + "\n";
  for (const auto& line : report.at("run").at("infrastructure")) text += "\n- " + cell_text(line) + "\n";
  text += "\n| status | verdicts |\n|---|---:|\n";
  for (const auto& [status, count] : report.at("counts").at("by_status").items())
    if (count != 0) text += "| " + status + " | " + std::to_string(count.get<uint64_t>()) + " |\n";
  if (const auto& changes = report.at("changes"); changes.is_object()) text += changes_text(changes);
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
