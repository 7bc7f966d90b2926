// SPDX-License-Identifier: BSD-3-Clause
// A worker process: loads one provider, writes its offers, then reads one case per line and writes one
// verdict per line. A crash loses one case. A line is the key of a case (cases/case_key.h), whose "seed" may
// override the worker's own, or a replay: {"replay": {...}, "variant": "avx2"}, or a question whether kernels
// serve cases: {"supports": [KEY, ...]}, which is answered by a line `true` or `false` for each key.
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
  JudgeContext context;  // scratch: a folder in which each case gets a subfolder
  uint64_t memory_limit_bytes =
      0;  // memory for judging, on top of that after loading the provider; 0: no limit
};

// Returns the arguments of a worker with these options, starting with `worker`.
std::vector<std::string> worker_arguments(const WorkerOptions& options);

// The first line that a worker writes.
struct WorkerReady {
  std::string error;  // why the provider cannot be judged; everything else is then empty
  std::string provider;
  nlohmann::ordered_json info;  // name, version, url, choices, library, implementations
  std::vector<Offer> offers;
};
nlohmann::ordered_json to_json(const WorkerReady& ready);
WorkerReady worker_ready_from_json(const nlohmann::ordered_json& json);  // throws std::runtime_error

// The key that a worker adds to a verdict if it should judge nothing more.
inline constexpr const char* kSpoiltKey = "spoilt";

// Returns the line that tells a worker to judge a replay with that variant.
nlohmann::ordered_json replay_key(const Replay& replay, const std::string& variant);

// Returns the line that asks a worker whether the kernels of these keys serve their cases.
std::string support_line(const std::vector<std::string>& keys);

// Reads cases from standard input and writes lines to `answer_fd`. Returns the exit code.
int run_worker(const WorkerOptions& options, int answer_fd);

// Returns {name, version, url, choices, library, implementations: [{op, scheme, variant, description, claims,
// runnable, refusal}]}.
nlohmann::ordered_json provider_json(const Registry& registry, const std::string& name);

}  // namespace qcts
