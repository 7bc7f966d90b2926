// SPDX-License-Identifier: BSD-3-Clause
// A worker process. It reads its options from the first line, loads one provider and writes its offers.
// Then the worker reads one case per line and writes one verdict per line. A crash loses one case.
// A line is the key of a case (cases/case_key.h), whose "seed" may override the worker's own.
// Alternatively, a line is a replay: {"replay": {...}, "variant": "avx2"}. With "shares": true, it asks for
// the shares of the options that the kernel may follow (identify/option_shares.h). A line may also ask
// whether kernels serve cases: {"supports": [KEY, ...]}. The answer is one line, `true` or `false`, for each
// key.
//
// A host (providers/hosted_provider.h) loads the builtin kernels and shared libraries. If it dies, the worker
// says so in place of a verdict, and ends.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fixtures/golden.h"
#include "reports/verdict.h"
#include "suites/cases/offers.h"
#include "suites/cases/selection/case_name.h"
#include "suites/host/cage.h"
#include "suites/judge/judge.h"
#include "suites/judge/replay.h"

namespace qcts {

struct WorkerOptions {
  // "qcts", "builtin", "reference", or the path of a shared library.
  // The path of a program is allowed too (providers/remote_provider.h).
  std::string provider;
  std::vector<std::filesystem::path> fixtures;
  Files fixture_files = Files::checked;
  Isolation isolation = Isolation::required;
  std::optional<int> device = {};  // the GPU on which the provider computes; none: the processor
  JudgeSettings settings;          // each case gets a subfolder of settings.scratch
  uint64_t memory_limit_bytes =
      0;  // memory limit for judging, in addition to the memory after loading the provider; 0: no limit
};

nlohmann::ordered_json to_json(const WorkerOptions& options);
// Throws nlohmann::json::exception if a member is missing or has another type.
WorkerOptions worker_options_from_json(const nlohmann::ordered_json& json);

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
// The keys of the line that replaces a verdict if the host died: how, and its peak memory in bytes.
inline constexpr const char* kHostFailedKey = "host_failed";
inline constexpr const char* kPeakResidentKey = "peak_resident_bytes";
// The key that a worker adds to a verdict: how often it asked its host since the last one.
inline constexpr const char* kRoundTripsKey = "round_trips";
// Files of code that the host has mapped since the previous verdict: [[path, inode], ...].
inline constexpr const char* kMappedKey = "mapped";

// Returns the line that tells a worker to judge a replay with that variant.
nlohmann::ordered_json replay_key(const Replay& replay, const std::string& variant);

// Returns the line that asks a worker whether the kernels of these keys serve their cases.
std::string support_line(const std::vector<std::string>& keys);

// Reads options and cases from standard input and writes lines to `answer_fd`. Returns the exit code.
int run_worker(int answer_fd);

// Returns {name, version, url, choices, library, implementations}. The last member is a list of
// {op, scheme, variant, description, claims, runnable, refusal}.
nlohmann::ordered_json provider_json(const Registry& registry, const std::string& name);

}  // namespace qcts
