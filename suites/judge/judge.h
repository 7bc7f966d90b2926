// SPDX-License-Identifier: BSD-3-Clause
// Judges a case. judge_guarded() is the only place where an exception becomes a verdict: Refused and wrong
// results are fail, bad_alloc is resource, anything else is internal.
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
class TestVectorCache;

struct JudgeContext {
  std::filesystem::path scratch;  // an empty folder for a case's files
  std::filesystem::path targets;  // suites/targets
  std::string program;            // first word of a rerun line: "build/release/bin/qcts"
  std::string rerun_options;  // options of a rerun beside --filter: "--plan quick --seed 7"; empty by default
  uint32_t threads = 1;       // for numerics; determinism also tries others
  double latency_budget_s = 3.0;            // per latency case
  Seconds spent = process_seconds;          // clock that counts a latency case's busy threads
  bool gate_latency = false;                // a missed latency target fails instead of being reported
  uint64_t seed = 0;                        // mixed into synthetic inputs
  OpenOptions open;                         // how round_trip, assign and size open the file
  const Registry* registry = nullptr;       // latency: where to look for the dense baseline; may be null
  TestVectorCache* test_vectors = nullptr;  // numerics, determinism: the last test vector made; may be null
  CoverageLog* coverage = nullptr;          // numerics: records every input that was judged; may be null
};

Verdict judge(const Case& c, const JudgeContext& context);

// Calls `judging`, which fills in `verdict`; turns an exception into status and reason.
void judge_guarded(Verdict& verdict, const std::function<void()>& judging);

// "build/release/bin/qcts run --filter 'FULL_ID' ..."
std::string rerun_line(const JudgeContext& context, const std::string& full_id);

// Each kind is implemented in suites/judge/<kind>.cc. They fill in status, reason, mismatch, measures and
// evidence; judge() fills in the rest.
void judge_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
// The round trip of a TorchScript program, which only a provider can save. `before` is the golden as read.
void judge_program(const Case& c, const JudgeContext& context, const Checkpoint& before, Verdict& verdict);
void judge_assign(const Case& c, const JudgeContext& context, Verdict& verdict);
// The same kinds for a provider that loads and saves files itself: suites/judge/load_save.cc.
void judge_provider_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_provider_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_size(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_numerics(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_determinism(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_latency(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
