// SPDX-License-Identifier: BSD-3-Clause
// Drives worker processes: hands out cases one at a time and enforces the watchdog's timeout. If a worker
// dies, hangs or writes nonsense, the case in flight gets that as its verdict, and the next case gets a fresh
// worker.
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
struct Source {
  WorkerOptions options;
  std::string given;                   // the provider as the user or the search named it: "builtin", a path
  std::filesystem::path logs;          // folder for the workers' output and errors, one file per worker
  Hello hello;                         // after greet()
  std::unique_ptr<ChildProcess> idle;  // a worker that has sent its hello and waits
};

struct Task {
  size_t source = 0;
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

  explicit Supervisor(std::vector<Source>& sources) : sources_(sources) {}

  // Starts a worker for every source and reads its hello. hello.error is set for a source that fails.
  void greet(double timeout_s);

  // Judges the tasks with at most `jobs` workers at a time, those of one source in order.
  void run(const std::vector<Task>& tasks, unsigned jobs, const OnVerdict& on_verdict, const OnWait& on_wait);

 private:
  struct Lane;
  std::unique_ptr<ChildProcess> start(const Source& source);
  std::unique_ptr<ChildProcess> start_greeted(Source& source, std::string& error);

  std::vector<Source>& sources_;
  int started_ = 0;
};

}  // namespace qcts
