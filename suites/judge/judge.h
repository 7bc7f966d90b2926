// SPDX-License-Identifier: BSD-3-Clause
// Judges a case. judge_guarded() is the only place where an exception becomes a verdict.
// Refused and wrong results become fail, bad_alloc becomes resource, and anything else becomes internal.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "reference/dialects/checkpoint.h"
#include "reports/verdict.h"
#include "suites/cases/case.h"
#include "suites/timing/busy_threads.h"
#include "suites/timing/roof.h"

namespace qcts {

class CoverageLog;
class TestVectorCache;

struct JudgeContext {
  std::filesystem::path scratch;  // an empty folder for a case's files
  std::filesystem::path targets;  // suites/targets
  std::string program;            // first word of a rerun line: "build/release/bin/qcts"
  // Options of a rerun in addition to --filter: "--plan quick --seed 7". By default there are none.
  std::string rerun_options;
  uint32_t threads = 1;                     // used by numerics; determinism also tries other numbers
  double latency_budget_s = 3.0;            // budget per latency case
  Seconds spent = process_seconds;          // clock that counts a latency case's busy threads
  Stopwatch stopwatch;                      // for latency cases
  bool gate_latency = false;                // a missed latency target or speed claim fails
  bool is_peer = false;                     // the provider is not under judgement, so its latency never gates
  uint64_t seed = 0;                        // mixed into synthetic inputs
  bool diagnose = true;                     // numerics: name the fault of the weights that explains a failure
  OpenOptions open;                         // options with which round_trip, assign and size open the file
  const Registry* registry = nullptr;       // latency: registry with the dense baseline; may be null
  TestVectorCache* test_vectors = nullptr;  // numerics, determinism: the last test vector; may be null
  CoverageLog* coverage = nullptr;          // numerics: records every input that was judged; may be null
};

Verdict judge(const Case& c, const JudgeContext& context);

// Calls `judging`, which fills in `verdict`. Turns an exception into a status and a reason.
void judge_guarded(Verdict& verdict, const std::function<void()>& judging);

// Returns "build/release/bin/qcts run --filter 'FULL_ID' ...".
std::string rerun_line(const JudgeContext& context, const std::string& full_id);

// The functions that judge one kind, implemented in suites/judge/<kind>.cc.
// These functions fill in status, reason, mismatch, measures and evidence; judge() fills in the rest.
void judge_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
// Judges the round trip of a TorchScript program, which only a provider can save.
// `before` is the golden as read.
void judge_program(const Case& c, const JudgeContext& context, const Checkpoint& before, Verdict& verdict);
void judge_assign(const Case& c, const JudgeContext& context, Verdict& verdict);
// Judge the same kinds for a provider that loads and saves files itself (suites/judge/files/load_save.cc).
void judge_provider_round_trip(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_provider_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_reject(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_size(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_numerics(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_determinism(const Case& c, const JudgeContext& context, Verdict& verdict);
void judge_latency(const Case& c, const JudgeContext& context, Verdict& verdict);

}  // namespace qcts
