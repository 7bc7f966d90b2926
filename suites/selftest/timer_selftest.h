// SPDX-License-Identifier: BSD-3-Clause
// Measures the false alarms and detections of the timer.
// Times each kernel of a latency plan many times against itself.
// Also times each kernel against a copy that is slower by a planted fraction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "suites/timing/stats.h"
#include "suites/timing/timed_kernel.h"

namespace qcts {

// A kernel in a host that slows it down by a fraction of its own time.
class SlowedKernel final : public TimedTarget {
 public:
  SlowedKernel(TimedKernel& kernel, double part) : kernel_(kernel), part_(part) {}
  void call(size_t copy) override { kernel_.call(copy); }
  size_t copies() const override { return kernel_.copies(); }
  void wake(size_t copy) override { kernel_.wake(copy); }
  double time_us(size_t first, size_t calls, bool rotate) override {
    return kernel_.time_slowed_us(first, calls, rotate, part_);
  }
  size_t max_calls(bool rotate) const override { return kernel_.max_calls(rotate); }
  const void* timed() const override { return kernel_.timed(); }
  double min_sample_us() const override { return kernel_.min_sample_us(); }
  double good_sample_us() const override { return kernel_.good_sample_us(); }
  double cpu_seconds() const override { return kernel_.cpu_seconds(); }

 private:
  TimedKernel& kernel_;
  double part_;
};

struct TimerSelftestRequest {
  std::string plan = "latency_quick";
  std::vector<std::string> filters;  // as for `qcts run --filter`
  uint64_t runs = 50;
  double planted = 0.03;
  double budget_s = 1;  // time for each case and run
};

struct TimerSelftestRow {
  std::string full_id;
  uint64_t runs = 0;
  uint64_t alarms = 0;          // alarms of the kernel against itself, with 0 % planted
  uint64_t found = 0;           // runs that found the planted slowdown: is_slower()
  uint64_t itself_missed = 0;   // runs whose interval against itself does not contain 1
  uint64_t planted_missed = 0;  // runs whose interval of the planted slowdown does not contain it
  double widest = 0;            // the largest relative half-width of an A/A interval
};

// Tests builtin kernels only, in a host, on one thread. Calls `on_run` with the number of finished runs.
// Throws RunError if the plan does not exist or if the filters leave no case that runs here.
std::vector<TimerSelftestRow> run_timer_selftest(const TimerSelftestRequest& request,
                                                 const std::function<void(uint64_t)>& on_run);

}  // namespace qcts
