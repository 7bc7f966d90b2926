// SPDX-License-Identifier: BSD-3-Clause
// One worker at a time and the case that it is judging.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "suites/run/workers/provider_slot.h"

namespace qcts {

struct Task {
  size_t slot = 0;
  CaseName name;
  std::string key;  // the line for the worker, made by case_key()
  double timeout_s = 60;
};

// Called after each verdict. Returning false stops the run.
using OnVerdict = std::function<bool(Verdict)>;

// A worker may die, hang or write nonsense. The current case then gets a verdict that says so, and the next
// case gets a fresh worker.
class WorkerLane {
 public:
  // Takes tasks from `queue`, and passes on each verdict. All three must outlive the lane.
  WorkerLane(ProviderSlot& slot, std::deque<Task>& queue, const OnVerdict& on_verdict)
      : slot_(&slot), queue_(&queue), on_verdict_(&on_verdict) {}

  const ProviderSlot* slot() const { return slot_; }
  bool is_busy() const { return task_.has_value(); }
  // These three are for a busy lane.
  const std::string& in_flight() const { return task_->name.full_id; }
  int answer_fd() const { return child_->answer_fd(); }
  double seconds_left() const { return seconds_until(deadline_); }

  // Gives an idle lane its next case. Returns false if there is none or if the run stops.
  bool feed();
  // Reads the worker's answer if there is one, and enforces the timeout.
  void attend(bool readable);
  // Leaves the worker to the slot for later.
  void retire();

 private:
  bool refill();
  bool finish(Verdict verdict);
  bool finish_broken(Status status, const std::string& reason);
  void finish_late();
  void finish_dead();
  void finish_dead(const std::string& how, uint64_t peak_resident_bytes);
  void take(const std::string& line);

  ProviderSlot* slot_;
  std::deque<Task>* queue_;
  const OnVerdict* on_verdict_;
  std::unique_ptr<ChildProcess> child_;
  std::deque<Task> waiting_;  // all variants of one case, so that the worker makes its input once
  std::optional<Task> task_;
  RunClock::time_point began_, deadline_;
};

}  // namespace qcts
