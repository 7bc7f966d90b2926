// SPDX-License-Identifier: BSD-3-Clause
// The functions that judge one kind of case about files, implemented in suites/judge/files/<kind>.cc.
// They fill in status, reason, findings, mismatch and measures; judge() fills in the rest.
#pragma once

#include "reports/verdict.h"
#include "suites/cases/case.h"
#include "suites/judge/context/judge_context.h"

namespace qcts {

void judge_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
// Judges the round trip of a TorchScript program, which only a provider can save.
// `before` is the golden as read.
void judge_program(const Case& c, const JudgeContext& context, const Checkpoint& before, Verdict& verdict);
void judge_assign(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_size(const Case& c, const JudgeContext& context, Verdict& verdict);
// Judge the same kinds for a provider that loads and saves files itself (load_save.cc).
void judge_provider_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_provider_reject(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
