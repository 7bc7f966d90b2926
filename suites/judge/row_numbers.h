// SPDX-License-Identifier: BSD-3-Clause
// A linear of more rows of x than 16 bits can count, for schemes whose smallest weight is so large that the
// oracle could not multiply it by them all. The rows repeat those of a smaller problem, and so does y.
#pragma once

#include "suites/cases/case.h"
#include "suites/judge/judge.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// Asks it beside a case of "batches" or of 33 "rows" whose weight is that large, of a provider of few
// schemes. If an answer is wrong, fills in status, reason and mismatch. Throws ProviderFault.
void judge_row_numbers(const Case& c, const JudgeContext& context, const KernelInput& input,
                       Verdict& verdict);

}  // namespace qcts
