// SPDX-License-Identifier: BSD-3-Clause
// Judges a case. judge_guarded() is the only place where an exception becomes a verdict.
// Refused and wrong results become fail, bad_alloc becomes resource, and anything else becomes internal.
#pragma once

#include <functional>

#include "reports/verdict.h"
#include "suites/cases/case.h"
#include "suites/judge/context/judge_context.h"

namespace qcts {

Verdict judge(const Case& c, const JudgeContext& context);

// Calls `judging`, which fills in `verdict`. Turns an exception into a status and a reason.
void judge_guarded(Verdict& verdict, const std::function<void()>& judging);

// The functions that judge one kind, implemented in suites/judge/<kind>/<kind>.cc; files/file_kinds.h has
// those of files. They fill in status, reason, findings, mismatch, measures and evidence; judge() fills in
// the rest.
void judge_numerics(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_determinism(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_latency(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
