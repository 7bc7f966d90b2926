// SPDX-License-Identifier: BSD-3-Clause
// A worker process. It loads one provider and writes its offers.
// Then the worker reads one case per line and writes one verdict per line. A crash loses one case.
// A line is the key of a case (cases/case_key.h), whose "seed" may override the worker's own.
// Alternatively, a line is a replay: {"replay": {...}, "variant": "avx2"}.
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
  // "qcts", "builtin", "reference", or the path of a shared library.
  // The path of a program is allowed too (providers/remote_provider.h).
  std::string provider;
  std::vector<std::filesystem::path> fixtures;
  Files fixture_files = Files::checked;
  JudgeContext context;  // context.scratch is a folder in which each case gets a subfolder
  uint64_t memory_limit_bytes =
      0;  // memory limit for judging, in addition to the memory after loading the provider; 0: no limit
};

// Returns the arguments of a worker with these options, starting with `worker`.
std::vector<std::string> worker_arguments(const WorkerOptions& options);

// The first line that a worker writes.
struct WorkerReady {
  std::string error;  // the reason why the provider cannot be judged; all other members are then empty
  std::string provider;
  nlohmann::ordered_json info;  // name, version, url, choices, library, implementations
  std::vector<Offer> offers;
};
nlohmann::ordered_json to_json(const WorkerReady& ready);
WorkerReady worker_ready_from_json(const nlohmann::ordered_json& json);  // throws std::runtime_error

// The key that a worker adds to a verdict if it should judge no further cases.
inline constexpr const char* kSpoiltKey = "spoilt";

// Returns the line that tells a worker to judge a replay with that variant.
nlohmann::ordered_json replay_key(const Replay& replay, const std::string& variant);

// Reads cases from standard input and writes lines to `answer_fd`. Returns the exit code.
int run_worker(const WorkerOptions& options, int answer_fd);

// Returns {name, version, url, choices, library, implementations}. The last member is a list of
// {op, scheme, variant, description, claims, runnable, refusal}.
nlohmann::ordered_json provider_json(const Registry& registry, const std::string& name);

}  // namespace qcts
