// SPDX-License-Identifier: BSD-3-Clause
// Problems that a numerics case asks in addition to its own, made from the same data: fewer rows of x in
// buffers with gaps, an x or a weight of zeros, and weights whose groups differ by many powers of two. Each
// is cheap, and none has its own id.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suites/cases/case.h"
#include "suites/judge/judge.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

struct ProblemBeside {
  KernelInput input;
  std::string what;  // "with only the first 4 rows of x"
};

// Returns the problems that are asked in addition to the one of `c`, whose input is `input`. Returns none for
// most inputs.
std::vector<ProblemBeside> problems_beside(const Case& c, const KernelInput& input);

// Judges the kernel of `c` on them, in the most irregular buffers that it accepts. If an answer is wrong,
// fills in status, reason and mismatch. Throws ProviderFault.
void judge_beside(const Case& c, const JudgeContext& context, const KernelInput& input, Verdict& verdict);

}  // namespace qcts
