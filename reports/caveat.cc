// SPDX-License-Identifier: BSD-3-Clause
#include "reports/caveat.h"

#include <algorithm>
#include <array>

#include "reports/verdict.h"

namespace qcts {
namespace {

constexpr std::array<std::string_view, kCaveatCount> kCaveatNames = {
    "unnoticed_change", "code_not_run",    "copied_bytes",    "hostile_input",       "harm",
    "overrun",          "wrote_nothing",   "stopped_writing", "left_earlier_answer", "wrote_part",
    "wrote_later",      "same_everywhere", "copied_input",    "earlier_answer",      "narrow_sum",
    "refused_by_values"};

bool weakens(Caveat caveat, Purpose purpose) {
  if (caveat == Caveat::unnoticed_change) return true;
  return purpose == Purpose::conformance &&
         (caveat == Caveat::code_not_run || caveat == Caveat::copied_bytes);
}

}  // namespace

std::string_view caveat_name(Caveat caveat) { return kCaveatNames[static_cast<size_t>(caveat)]; }

std::optional<Caveat> caveat_from_name(std::string_view name) {
  for (size_t i = 0; i < kCaveatNames.size(); ++i)
    if (kCaveatNames[i] == name) return static_cast<Caveat>(i);
  return std::nullopt;
}

void conclude(Verdict& verdict, Purpose purpose) {
  if (verdict.status == Status::pass) {
    const auto weak = std::ranges::find_if(
        verdict.findings, [&](const VerdictFinding& finding) { return weakens(finding.caveat, purpose); });
    if (weak != verdict.findings.end()) {
      verdict.status = Status::weak_evidence;
      verdict.reason = weak->text;
    }
  }
  const bool is_wrong = verdict.status == Status::fail || verdict.status == Status::weak_evidence;
  if (is_wrong && verdict.has(Caveat::hostile_input) && !verdict.has(Caveat::harm))
    verdict.status = Status::robustness;
}

}  // namespace qcts
