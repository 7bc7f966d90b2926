// SPDX-License-Identifier: BSD-3-Clause
// Judges a linear with more rows of x than 16 bits can count, for schemes whose smallest weight is too large
// for the oracle to multiply it by all of them. The rows repeat those of a smaller problem, and so does y.
#pragma once

#include "suites/cases/case.h"
#include "suites/judge/judge.h"
#include "suites/providers/kernel_run.h"

namespace qcts {

// Asks it in addition to a case of "batches", or of "rows" with 33 rows, whose weight is that large, for a
// provider with few schemes. If an answer is wrong, fills in status, reason and mismatch. Throws
// ProviderFault.
void judge_row_numbers(const Case& c, const JudgeContext& context, const KernelInput& input,
                       Verdict& verdict);

}  // namespace qcts
