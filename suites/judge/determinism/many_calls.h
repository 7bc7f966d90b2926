// SPDX-License-Identifier: BSD-3-Clause
// Makes hundreds of calls of one kernel in one process, and judges each. A larger problem comes before them,
// and another one exactly 256 calls after it: a counter of 8 bits that tells old data from new confuses the
// two. The same for shapes 256 groups apart, and for a weight after 300 others were prepared.
#pragma once

#include <optional>
#include <string>

#include "suites/cases/case.h"
#include "suites/judge/context/judge_context.h"
#include "suites/judge/expected/judged_problem.h"

namespace qcts {

// Is the case one of its provider's few cases that ask this? All cases of a provider with few schemes do.
bool asks_many_calls(const Case& c, const JudgeContext& context);

struct FaultOfCalls {
  std::string reason;
  std::optional<Mismatch> mismatch;  // absent: the answers are right
};

// `given` is a problem of the case that the kernel answers correctly. `kernel` belongs to a process that has
// been asked for only one thread. Throws ProviderFault.
std::optional<FaultOfCalls> fault_of_many_calls(const Case& c, const JudgeContext& context,
                                                const qcts_kernel& kernel, const KernelInput& given);

}  // namespace qcts
