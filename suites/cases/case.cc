// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/case.h"

#include <algorithm>

namespace qcts {
bool is_program(const Golden& golden) {
  return !golden.runs.empty() ||
         std::find(golden.flags.begin(), golden.flags.end(), "torchscript") != golden.flags.end();
}

std::string Case::provider() const {
  if (runner != nullptr) return runner->provider;
  if (id.kind == Kind::round_trip && golden() != nullptr && is_program(*golden())) return kAbsentRunner;
  return implementation == nullptr ? "qcts" : implementation->provider;
}

std::string Case::variant() const {
  if (runner != nullptr) return kProgramVariant;
  return implementation == nullptr ? "" : implementation->kernel->variant;
}

std::string Case::full_id() const {
  return judges_file() ? id.text() : id.text() + "/" + provider() + "_" + variant();
}

bool Case::is_warm() const {
  const auto* timed = std::get_if<TimedQuestion>(&question);
  return timed != nullptr && timed->warm;
}

double budget_share(const Case& c) {
  if (c.is_block()) return kBlockBudgetShare;
  const bool has_rows = c.id.op == Op::linear || c.id.op == Op::quantize_activation;
  return has_rows && c.synthetic()->m >= kPrefillRows ? kPrefillBudgetShare : 1;
}

}  // namespace qcts
