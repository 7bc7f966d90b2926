// SPDX-License-Identifier: BSD-3-Clause
// Case -> Verdict. judge_guarded() is the only place where an exception becomes a verdict: Refused and wrong
// results are fail, bad_alloc is resource, anything unexpected is internal.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"
#include "suites/cases/case.h"
#include "suites/timing/busy_threads.h"

namespace qcts {

class CoverageLog;
class LastQuestion;

struct JudgeContext {
  std::filesystem::path scratch;  // an empty folder for files that a case writes
  std::filesystem::path targets;  // suites/targets
  std::string program;            // the word that starts a rerun line: "build/release/bin/qcts"
  std::string rerun_options;  // what a rerun needs beside --filter: "--plan quick --seed 7"; empty by default
  uint32_t threads = 1;       // for numerics; determinism tries others itself
  double latency_budget_s = 3.0;       // per latency case
  Seconds spent = process_seconds;     // what the threads of a latency case are counted by
  bool gate_latency = false;           // a missed latency target is fail instead of a reported figure
  uint64_t seed = 0;                   // mixed into synthetic inputs
  OpenOptions open;                    // how round_trip, assign and size read the file
  const Registry* registry = nullptr;  // latency: where the dense baseline is looked for; may be null
  LastQuestion* asked = nullptr;       // numerics, determinism: what the case before was asked; may be null
  CoverageLog* coverage = nullptr;     // numerics: told of every question that was judged; may be null
};

Verdict judge(const Case& c, const JudgeContext& context);

// Calls `judging`, which fills `verdict`; what it throws becomes status and reason.
void judge_guarded(Verdict& verdict, const std::function<void()>& judging);

// "build/release/bin/qcts run --filter 'FULL_ID' ..."
std::string rerun_line(const JudgeContext& context, const std::string& full_id);

// One file a kind: suites/<kind>.cc. They fill status, reason, mismatch, measures, evidence; judge() fills
// the rest.
void judge_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
// The part of round_trip for a program, which no writer of ours can save: `before` is the golden as it was
// read.
void judge_program(const Case& c, const JudgeContext& context, const Checkpoint& before, Verdict& verdict);
void judge_assign(const Case& c, const JudgeContext& context, Verdict& verdict);
// The same of a provider that loads and saves files itself: suites/judge/load_save.cc.
void judge_provider_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_provider_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_size(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_numerics(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_determinism(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_latency(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
