// SPDX-License-Identifier: BSD-3-Clause
#include "reference/values/values.h"

#include <array>
#include <cstdio>

#include "reference/numerics/soft_float.h"
#include "reference/numerics/special_values.h"

namespace qcts {
namespace {

constexpr std::array<std::string_view, kValueRuleCount> kRuleNames = {
    "scale", "zero_point", "code", "idle_bits", "not_a_number", "infinity", "zero_groups", "saturated_codes"};

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::string_view value_rule_name(ValueRule rule) { return kRuleNames[static_cast<size_t>(rule)]; }

double TensorValues::zero_group_percent() const { return percent(zero_groups, groups); }
double TensorValues::saturated_percent() const { return percent(saturated, codes); }

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string percent_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g %%", value);
  return text;
}

std::string value_finding_text(const ValueFinding& finding) {
  std::string text = finding.tensor + ": ";
  const bool zero_groups = finding.rule == ValueRule::zero_groups;
  if (zero_groups || finding.rule == ValueRule::saturated_codes)
    return text + finding.value + (zero_groups ? " of its groups are zeros" : " of its codes are saturated") +
           " (" + std::to_string(finding.count) + " of " + std::to_string(finding.total) + ", " +
           finding.expected + ")";
  if (!finding.plane.empty()) text += finding.plane + ": ";
  if (!finding.place.empty()) text += finding.place + ": ";
  text += finding.value;
  if (!finding.expected.empty()) text += " (" + finding.expected + ")";
  if (finding.count > 1)
    text += ", the first of " + std::to_string(finding.count) + " among " + std::to_string(finding.total);
  return text;
}

}  // namespace qcts
