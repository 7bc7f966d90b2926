// SPDX-License-Identifier: BSD-3-Clause
// One provider as the parent knows it, and its workers: starting them and asking them which cases they serve.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "suites/base/process.h"
#include "suites/providers/mapped_code.h"
#include "suites/run/workers/worker.h"

namespace qcts {

using RunClock = std::chrono::steady_clock;
RunClock::time_point in_seconds(double seconds);
double seconds_until(RunClock::time_point when);
std::string seconds_text(double seconds);  // "60 s"

// A provider that times out this often in a row is not asked any more, unless its slot keeps going.
inline constexpr size_t kMaxTimeouts = 3;

struct ProviderSlot {
  WorkerOptions options;
  std::string given;                   // the provider as the user or the search named it: "builtin", a path
  std::filesystem::path logs;          // folder for the workers' output and errors, one file per worker
  WorkerReady ready;                   // set after start_workers()
  std::unique_ptr<ChildProcess> idle;  // a worker that has answered the handshake and waits
  int started = 0;                     // workers so far
  std::set<MappedInode> mapped = {};   // files of code, by all its hosts
  uint64_t round_trips = 0;            // of all its workers to their hosts, for verdicts
  bool keep_going = true;              // after kMaxTimeouts
  size_t timeouts = 0;                 // in a row
};

// Appends "; its log: PATH", if the log has anything and outlives the command.
std::string with_log(std::string text, const ProviderSlot& slot, const std::filesystem::path& log);

// Starts a worker for every slot and reads its answer. Sets ready.error for a slot that fails.
void start_workers(std::vector<ProviderSlot>& slots, double timeout_s);

// Returns the idle worker of the slot or a new one; nullptr, with the reason in `error`, if none starts. No
// further worker of the slot is started then.
std::unique_ptr<ChildProcess> take_worker(ProviderSlot& slot, std::string& error);

// Asks a worker of the slot in one round trip whether its kernels serve cases.
// A kernel that crashes or does not answer within the timeout counts as serving, and is not asked again.
// Judging the case then shows the fault.
std::vector<bool> ask_support(ProviderSlot& slot, std::span<const SupportQuestion> questions,
                              double timeout_s);

}  // namespace qcts
