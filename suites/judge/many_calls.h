// SPDX-License-Identifier: BSD-3-Clause
// Hundreds of calls of one kernel in one process, each of which is judged, with a larger problem before and
// another exactly 256 calls after it: to a counter of 8 bits that tells old data from new, both are one call.
#pragma once

#include <optional>
#include <string>

#include "suites/cases/case.h"
#include "suites/judge/context/judge_context.h"
#include "suites/judge/judged_problem.h"

namespace qcts {

// Is the case one of the few of its provider that ask this? All of a provider of few schemes do.
bool asks_many_calls(const Case& c);

struct FaultOfCalls {
  std::string reason;
  std::optional<Mismatch> mismatch;  // absent: the answers are right
};

// `given` is a problem of the case that the kernel answers right. `kernel` is that of a process that has
// been asked for only one thread. Throws ProviderFault.
std::optional<FaultOfCalls> fault_of_many_calls(const Case& c, const JudgeContext& context,
                                                const qcts_kernel& kernel, const KernelInput& given);

}  // namespace qcts
