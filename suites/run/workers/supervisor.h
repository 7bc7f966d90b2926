// SPDX-License-Identifier: BSD-3-Clause
// Judges cases in worker processes, several at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "suites/run/workers/worker_lane.h"

namespace qcts {

// Called now and then, to show progress. Returning false stops the run.
using OnWait = std::function<bool(const std::vector<std::string>& in_flight)>;

// Judges the tasks with at most `jobs` workers at a time. The tasks of one slot are judged in order.
// start_workers() must have been called.
void judge_tasks(std::vector<ProviderSlot>& slots, const std::vector<Task>& tasks, unsigned jobs,
                 const OnVerdict& on_verdict, const OnWait& on_wait);

}  // namespace qcts
