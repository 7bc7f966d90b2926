// SPDX-License-Identifier: BSD-3-Clause
#include "suites/selftest/explain.h"

#include <algorithm>
#include <ranges>

#include "reports/failure_title.h"
#include "suites/selftest/kill.h"

namespace qcts::selftest {
namespace {

constexpr Explanation kExplanations[] = {
#define QCTS_EXPLANATION(faults, case_id, hypotheses) {#faults, case_id, hypotheses},
#include "suites/selftest/mutants/explanations.inc"
#undef QCTS_EXPLANATION
};

}  // namespace

std::span<const Explanation> explanation_list() { return kExplanations; }

bool Explained::right() const {
  if (!killed) return false;
  if (hypothesis.empty()) return asked.is_pair();
  return std::ranges::any_of(asked.hypotheses | std::views::split('|'),
                             [&](auto word) { return std::ranges::equal(word, hypothesis); });
}

Explained explain(const Explanation& asked) {
  KillRequest request;
  request.cases = {std::string(asked.case_id)};
  const KillRow row = kill_together(request, std::string(asked.faults));
  if (!row.killed()) return {asked, false, {}, "lives " + row.problem};
  const std::string& reason = row.killers[0].reason;
  return {asked, true, hypothesis_of(reason), reason};
}

}  // namespace qcts::selftest
