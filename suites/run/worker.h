// SPDX-License-Identifier: BSD-3-Clause
// A worker process: loads one provider, says what it offers, then judges one question a line and answers with
// one verdict a line. A crash costs the parent one question. A line is the key of a case (cases/case_key.h),
// where "seed" may take the place of the worker's own, or a replay: {"replay": {...}, "variant": "avx2"}.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "reports/verdict.h"
#include "suites/cases/case_name.h"
#include "suites/cases/offers.h"
#include "suites/judge/judge.h"
#include "suites/judge/replay.h"

namespace qcts {

struct WorkerOptions {
  // "qcts", "builtin", "reference", the path of a shared library, or of a program
  // (providers/remote_provider.h)
  std::string provider;
  std::vector<std::filesystem::path> fixtures;
  Files fixture_files = Files::checked;
  JudgeContext context;  // scratch: a folder in which each case gets its own
  uint64_t memory_limit_bytes =
      0;  // what judging may take beside what the provider took to load; 0: no limit
};

// The command line of a worker with these options, `worker` first.
std::vector<std::string> worker_arguments(const WorkerOptions& options);

// The first line of a worker.
struct Hello {
  std::string error;  // why the provider cannot be judged; everything else is then empty
  std::string provider;
  nlohmann::ordered_json info;  // name, version, url, choices, library, implementations
  std::vector<Offer> offers;
};
nlohmann::ordered_json to_json(const Hello& hello);
Hello hello_from_json(const nlohmann::ordered_json& json);  // throws std::runtime_error

// The key that a worker puts beside a verdict after which it should judge nothing more.
inline constexpr const char* kSpoiltKey = "spoilt";

// The line that puts a replay to the kernel of that variant.
nlohmann::ordered_json replay_key(const Replay& replay, const std::string& variant);

// Reads questions from standard input, writes lines to `answer_fd`. Returns the exit code.
int run_worker(const WorkerOptions& options, int answer_fd);

// {name, version, url, choices, library, implementations: [{op, scheme, variant, description, claims,
// runnable, refusal}]}
nlohmann::ordered_json provider_json(const Registry& registry, const std::string& name);

}  // namespace qcts
