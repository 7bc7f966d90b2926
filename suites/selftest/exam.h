// SPDX-License-Identifier: BSD-3-Clause
// Tests parts of the judge (comparator, runner, merge, bench) with questions whose answers are known.
// The real parts must answer all questions right.
// A mutant, which is one part with a planted fault, must answer at least one of them wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suites/selftest/mutant_list.h"

namespace qcts::selftest {

struct ExamResult {
  std::string question;  // "comparator.nan_within_a_bound"
  std::string what;      // the meaning of a wrong answer
  bool held = false;
};

// Asks all questions of a kind in kExaminedKinds. The real parts answer, or those with the fault of `mutant`.
// Throws std::invalid_argument for a mutant of another kind.
std::vector<ExamResult> examine(MutantKind kind, std::string_view mutant = "");

}  // namespace qcts::selftest
