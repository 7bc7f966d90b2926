// SPDX-License-Identifier: BSD-3-Clause
// Judges a linear on a weight with more than 2^32 bytes of codes (suites/inputs/far_weight.h).
#pragma once

#include "suites/cases/case.h"
#include "suites/judge/context/judge_context.h"

namespace qcts {

// Calls the kernel once, in a separate host that maps the chunk of codes again and again. 64 of the outputs
// are compared with the oracle, half of them beyond 2^32 bytes. A kernel that is not in a host, that computes
// on a device, or whose prepared weight takes more than 5 GiB is not asked.
void judge_far_case(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
