// SPDX-License-Identifier: BSD-3-Clause
// Finds mistakes that only a fresh process shows: a kernel that keeps something from one problem and
// uses it in another, that goes by environment variables of other libraries, or that changes with the number
// of its calls.
#pragma once

#include <cstdint>
#include <string>

#include "suites/cases/case.h"
#include "suites/judge/expected/judged_problem.h"
#include "suites/judge/judge.h"

namespace qcts {

// Returns the number of schemes for which the provider has the operation; 1 for a kernel of this process.
int64_t schemes_served(const Case& c);

// Is the case one of those that ask this? One case in `share` is, more of a provider with few schemes, and
// every case of one with `few_schemes` or fewer.
bool is_dealt(const Case& c, int64_t share, int64_t few_schemes = 8);

// Starts a process for the kernel of `c`, whose answer to `given` was right in another process: `answer`. If
// the kernel errs there, fills in status, reason and mismatch. A kernel of this process is asked there, and
// about neither the environment nor many calls. Throws ProviderFault.
void judge_fresh_process(const Case& c, const JudgeContext& context, const JudgedProblem& given,
                         const KernelAnswer& answer, Verdict& verdict);

// Calls the kernel, which has only been asked for one thread in its process, a few times more. Returns what
// that leaves behind or which threads it uses, or "". The run must be accepted.
std::string effect_of_few_calls(const qcts_kernel& kernel, KernelRun& run);

}  // namespace qcts
