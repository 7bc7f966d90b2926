// SPDX-License-Identifier: BSD-3-Clause
// Drives worker processes: hands out cases one at a time and enforces the watchdog's timeout.
// A worker may die, hang or write nonsense. The current case then gets a verdict that says so.
// The next case gets a fresh worker.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
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
  WorkerReady ready;                   // set after handshake()
  std::unique_ptr<ChildProcess> idle;  // a worker that has answered the handshake and waits
};

struct Task {
  size_t slot = 0;
  CaseName name;
  std::string key;  // the line for the worker, made by case_key()
  double timeout_s = 60;
};

class Supervisor {
 public:
  // Called after each verdict. Returning false stops the run.
  using OnVerdict = std::function<bool(Verdict)>;
  // Called now and then, to show progress. Returning false stops the run.
  using OnWait = std::function<bool(const std::vector<std::string>& in_flight)>;

  explicit Supervisor(std::vector<ProviderSlot>& slots) : slots_(slots) {}

  // Starts a worker for every slot and reads its answer. Sets ready.error for a slot that fails.
  void handshake(double timeout_s);

  // Judges the tasks with at most `jobs` workers at a time. The tasks of one slot are judged in order.
  void run(const std::vector<Task>& tasks, unsigned jobs, const OnVerdict& on_verdict, const OnWait& on_wait);

 private:
  struct WorkerSlot;
  std::unique_ptr<ChildProcess> start(const ProviderSlot& slot);
  std::unique_ptr<ChildProcess> start_with_handshake(ProviderSlot& slot, std::string& error);

  std::vector<ProviderSlot>& slots_;
  int started_ = 0;
};

}  // namespace qcts
