// SPDX-License-Identifier: BSD-3-Clause
// Questions about parts of the judge whose answers are known: what compares, what counts, what joins, what
// times. The real parts answer all of them right; a mutant is one part with a planted fault and has to answer
// one wrongly.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "suites/selftest/mutant_list.h"

namespace qcts::selftest {

struct ExamResult {
  std::string question;  // "comparator.nan_within_a_bound"
  std::string what;      // what a wrong answer means
  bool held = false;
};

// All questions of a kind, of kExaminedKinds, put to the real parts, or to those with the fault of `mutant`.
// Throws std::invalid_argument for a mutant of another kind.
std::vector<ExamResult> examine(MutantKind kind, std::string_view mutant = "");

}  // namespace qcts::selftest
