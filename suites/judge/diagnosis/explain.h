// SPDX-License-Identifier: BSD-3-Clause
// Puts the explanations of a wrong answer in order: the mistake that predicts all of it, the weights that
// were really used, what is common to all elements.
#pragma once

#include <string>

#include "reports/verdict.h"
#include "suites/judge/expected/expectation.h"

namespace qcts {

struct WrongAnswerOf {
  const qcts_kernel& kernel;
  const TestVector& test_vector;
  const Expectation& expectation;
  LinearStages stages;
  const KernelAnswer& answer;
  uint64_t wrong_elems = 0;  // as the judge counts them
  uint32_t threads = 1;
};

// Returns what a verdict's reason adds, "; hypothesis: ..." or what was seen; empty if nothing is known.
// Runs the kernel on probes, and adds what they show to `findings`. Never throws because of the kernel.
std::string explained(const WrongAnswerOf& wrong, std::vector<VerdictFinding>& findings);

}  // namespace qcts
