// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/check/check_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>

#include "suites/base/printable.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kShownFindings = 20;
constexpr size_t kValueLabel = 15;  // columns, as of the other verdicts

double percentage(const std::string& option, std::string text) {
  const std::string given = text;
  if (text.ends_with('%')) text.pop_back();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 100))
    throw CLI::ValidationError(option + " " + given + ": a percentage from 0 to 100, such as 0.5 or 1%");
  return value;
}

// "1.2 %, most in a.weight: 3 %"
std::string share_text(const CheckpointValues& values, uint64_t TensorValues::*part,
                       uint64_t TensorValues::*whole, double (TensorValues::*percent)() const) {
  TensorValues all;
  const TensorValues* most = nullptr;
  for (const TensorValues& tensor : values.tensors) {
    all.*part += tensor.*part;
    all.*whole += tensor.*whole;
    if (tensor.*part != 0 && (most == nullptr || (tensor.*percent)() > (most->*percent)())) most = &tensor;
  }
  std::string text = grouped(all.*part) + " of " + grouped(all.*whole);
  if (most == nullptr) return text;
  text += " (" + percent_text((all.*percent)()) + ")";
  if (values.tensors.size() > 1) text += ", most in " + most->name + ": " + percent_text((most->*percent)());
  return text;
}

// The rules that were broken, each once: "scale, code".
std::string rules_text(const CheckpointValues& values) {
  std::string text;
  for (int rule = 0; rule < kValueRuleCount; ++rule)
    if (std::ranges::find(values.findings, static_cast<ValueRule>(rule), &ValueFinding::rule) !=
        values.findings.end())
      text += (text.empty() ? "" : ", ") + std::string(value_rule_name(static_cast<ValueRule>(rule)));
  return text;
}

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json tensor_json(const TensorValues& tensor) {
  const bool has_codes = tensor.codes != 0;
  return {{"name", tensor.name},
          {"scheme", tensor.scheme},
          {"groups", tensor.groups},
          {"zero_groups", tensor.zero_groups},
          {"codes", has_codes ? Json(tensor.codes) : Json(nullptr)},
          {"saturated_codes", has_codes ? Json(tensor.saturated) : Json(nullptr)},
          {"scales", tensor.scales},
          {"median_scale", number(tensor.median_scale)},
          {"largest_scale", number(tensor.largest_scale)},
          {"largest_scale_at", tensor.largest_scale_place},
          {"outlier_scales", tensor.outlier_scales}};
}

}  // namespace

void add_value_limits(CLI::App& command, ValueLimits& limits) {
  const auto add = [&](const std::string& name, std::optional<double>& limit, const std::string& help) {
    command
        .add_option_function<std::string>(
            name, [&limit, name](const std::string& text) { limit = percentage(name, text); }, help)
        ->type_name("PERCENT");
  };
  add("--max-zero-groups", limits.max_zero_groups_percent,
      "fail if more of a quantized tensor's groups dequantize to only zeros");
  add("--max-saturated", limits.max_saturated_percent,
      "fail if more of a quantized tensor's codes are at an end of their range");
}

Verdict values_verdict(const CheckpointValues& values, const std::string& rerun) {
  Verdict verdict;
  verdict.case_id = {Kind::values, Op::file, "any", "file"};
  verdict.provider = "qcts";
  verdict.evidence = {"file"};
  verdict.rerun = rerun;
  verdict.status = values.findings.empty() ? Status::pass : Status::fail;
  if (values.findings.empty()) return verdict;
  const ValueFinding& first = values.findings.front();
  verdict.reason = grouped(values.findings.size()) +
                   (values.findings.size() == 1 ? " finding: " : " findings: ") + rules_text(values);
  verdict.mismatch = Mismatch{first.tensor + (first.plane.empty() ? "" : ": " + first.plane) +
                                  (first.place.empty() ? "" : ": " + first.place),
                              first.expected, first.value, first.count, first.total};
  return verdict;
}

void print_value_findings(const CheckpointValues& values) {
  print_notes(values.notes);
  for (size_t i = 0; i < std::min(values.findings.size(), kShownFindings); ++i)
    std::cerr << "qcts: finding: " << printable(value_finding_text(values.findings[i])) << "\n";
  if (values.findings.size() > kShownFindings)
    std::cerr << "qcts: finding: and " << values.findings.size() - kShownFindings << " more\n";
}

void print_values(const CheckpointValues& values, Printout& out) {
  const bool has_groups = std::ranges::any_of(values.tensors, &TensorValues::groups);
  const bool has_codes = std::ranges::any_of(values.tensors, &TensorValues::codes);
  if (has_groups)
    out.item("", kValueLabel,
             "zero groups " + share_text(values, &TensorValues::zero_groups, &TensorValues::groups,
                                         &TensorValues::zero_group_percent));
  if (has_codes)
    out.item("", kValueLabel,
             "saturated codes " + share_text(values, &TensorValues::saturated, &TensorValues::codes,
                                             &TensorValues::saturated_percent));
}

Json values_json(const CheckpointValues& values) {
  Json findings = Json::array(), tensors = Json::array();
  for (const ValueFinding& finding : values.findings)
    findings.push_back({{"rule", value_rule_name(finding.rule)},
                        {"tensor", finding.tensor},
                        {"plane", finding.plane},
                        {"place", finding.place},
                        {"value", finding.value},
                        {"expected", finding.expected},
                        {"count", finding.count},
                        {"total", finding.total}});
  for (const TensorValues& tensor : values.tensors) tensors.push_back(tensor_json(tensor));
  return {{"findings", findings}, {"notes", values.notes}, {"tensors", tensors}};
}

}  // namespace qcts::cli
