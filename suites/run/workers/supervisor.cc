// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/workers/supervisor.h"

#include <algorithm>
#include <utility>

#include <poll.h>

namespace qcts {
namespace {

constexpr double kPatienceS = 0.25;  // between two calls of OnWait

// Returns the slot with the longest queue per lane, counting a lane that would be new. Returns the number of
// slots if none needs another lane.
size_t slot_for_new_lane(const std::vector<ProviderSlot>& slots, const std::vector<std::deque<Task>>& queues,
                         const std::deque<WorkerLane>& lanes) {
  size_t best = slots.size();
  size_t most = 0;
  for (size_t i = 0; i < queues.size(); ++i) {
    const auto running = static_cast<size_t>(
        std::ranges::count_if(lanes, [&](const WorkerLane& lane) { return lane.slot() == &slots[i]; }));
    const size_t share = queues[i].size() / (running + 1);
    if (queues[i].size() > running * 8 && share + 1 > most && !queues[i].empty()) best = i, most = share + 1;
  }
  return best;
}

// Waits until a worker answers, a case is too late, or it is time to show progress.
void attend_lanes(std::deque<WorkerLane>& lanes) {
  std::vector<pollfd> polls;
  double patience_s = kPatienceS;
  for (const WorkerLane& lane : lanes) {
    polls.push_back({lane.answer_fd(), POLLIN, 0});
    patience_s = std::min(patience_s, std::max(0.0, lane.seconds_left()));
  }
  ::poll(polls.data(), polls.size(), static_cast<int>(patience_s * 1000) + 1);
  for (size_t i = 0; i < lanes.size(); ++i) lanes[i].attend(polls[i].revents != 0);
}

}  // namespace

void judge_tasks(std::vector<ProviderSlot>& slots, const std::vector<Task>& tasks, unsigned jobs,
                 const OnVerdict& on_verdict, const OnWait& on_wait) {
  std::vector<std::deque<Task>> queues(slots.size());
  for (const Task& task : tasks) queues[task.slot].push_back(task);
  bool go_on = true;
  const OnVerdict report = [&](Verdict verdict) {
    go_on = on_verdict(std::move(verdict)) && go_on;
    return go_on;
  };
  std::deque<WorkerLane> lanes;
  while (go_on) {
    while (lanes.size() < std::max(1u, jobs)) {
      const size_t slot = slot_for_new_lane(slots, queues, lanes);
      if (slot == slots.size()) break;
      lanes.emplace_back(slots[slot], queues[slot], report);
    }
    std::erase_if(lanes, [&](WorkerLane& lane) {
      if (lane.is_busy() || (go_on && lane.feed())) return false;
      lane.retire();
      return true;
    });
    if (lanes.empty() && std::ranges::all_of(queues, &std::deque<Task>::empty)) break;
    if (lanes.empty()) continue;
    std::vector<std::string> in_flight;
    for (const WorkerLane& lane : lanes) in_flight.push_back(lane.in_flight());
    attend_lanes(lanes);
    go_on = on_wait(in_flight) && go_on;
  }
}

}  // namespace qcts
