// SPDX-License-Identifier: BSD-3-Clause
// Drives worker processes: hands out cases one at a time and enforces the watchdog's timeout. If a worker
// dies, hangs or writes nonsense, the case in flight gets that as its verdict, and the next case gets a fresh
// worker.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "suites/base/process.h"
#include "suites/run/worker.h"

namespace qcts {

// One provider as the parent knows it.
struct ProviderSlot {
  WorkerOptions options;
  std::string given;                   // the provider as the user or the search named it: "builtin", a path
  std::filesystem::path logs;          // folder for the workers' output and errors, one file per worker
  WorkerReady ready;                   // after handshake()
  std::unique_ptr<ChildProcess> idle;  // a worker that has answered the handshake and waits
};

struct Task {
  size_t slot = 0;
  CaseName name;
  std::string key;  // the line for the worker: case_key()
  double timeout_s = 60;
};

class Supervisor {
 public:
  // Called after each verdict; false stops the run.
  using OnVerdict = std::function<bool(Verdict)>;
  using OnWait = std::function<bool(const std::vector<std::string>& in_flight)>;  // called now and then, for
                                                                                  // progress; false stops

  explicit Supervisor(std::vector<ProviderSlot>& slots) : slots_(slots) {}

  // Starts a worker for every slot and reads its answer. ready.error is set for a slot that fails.
  void handshake(double timeout_s);

  // Asks a slot's worker, in one round trip, whether its kernels serve cases. A kernel that crashes or does
  // not answer within the timeout counts as serving, and is not asked again: judging will show the fault.
  std::vector<bool> ask_support(size_t slot, std::span<const SupportQuestion> questions, double timeout_s);

  // Judges the tasks with at most `jobs` workers at a time, those of one slot in order.
  void run(const std::vector<Task>& tasks, unsigned jobs, const OnVerdict& on_verdict, const OnWait& on_wait);

 private:
  struct WorkerSlot;
  std::unique_ptr<ChildProcess> start(const ProviderSlot& slot);
  std::unique_ptr<ChildProcess> start_with_handshake(ProviderSlot& slot, std::string& error);

  std::vector<ProviderSlot>& slots_;
  int started_ = 0;
};

}  // namespace qcts
