// SPDX-License-Identifier: BSD-3-Clause
// Does the stopwatch accuse the innocent, and does it find the guilty? The cases of a latency plan, each
// kernel timed against itself and against itself made slower by a planted part, many times over.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "suites/timing/stats.h"
#include "suites/timing/timed_target.h"

namespace qcts {

// Another target, slower: after each call it waits for `part` of the time that the call took. What the
// watch itself costs, three looks at the clock (0.3 % of a call of 26 us), a part of 0 costs as well.
class DelayedTarget final : public TimedTarget {
 public:
  DelayedTarget(TimedTarget& other, double part) : other_(other), part_(part) {}
  void call(size_t copy) override;
  size_t copies() const override { return other_.copies(); }

 private:
  TimedTarget& other_;
  double part_;
};

struct StopwatchRequest {
  std::string plan = "latency_quick";
  std::vector<std::string> filters;  // as `qcts run --filter`
  uint64_t runs = 50;
  double planted = 0.03;
  double budget_s = 1;  // of a case in a run
};

struct StopwatchRow {
  std::string full_id;
  uint64_t runs = 0;
  uint64_t alarms = 0;          // against itself, planted 0 %
  uint64_t found = 0;           // the planted part: is_slower()
  uint64_t itself_missed = 0;   // the interval against itself does not hold 1
  uint64_t planted_missed = 0;  // the interval of the planted part does not hold it
  double widest = 0;            // half-width of an A/A interval, relative
};

// Builtin kernels alone, one thread. `on_run` hears how many runs are done. Throws RunError for a plan that
// is not there, and when the filters leave no case that runs here.
std::vector<StopwatchRow> test_stopwatch(const StopwatchRequest& request,
                                         const std::function<void(uint64_t)>& on_run);

}  // namespace qcts
