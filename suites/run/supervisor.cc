// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/supervisor.h"

#include <algorithm>
#include <deque>
#include <optional>

#include <poll.h>

#include "suites/base/memory.h"
#include "suites/base/paths.h"

namespace qcts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kGreetingTimeoutS = 120;  // LibTorch from a cold disk

Clock::time_point in_seconds(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_until(Clock::time_point when) {
  return std::chrono::duration<double>(when - Clock::now()).count();
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

// Returns the next complete line; nullopt after the deadline or if the child closed the pipe (`closed`).
std::optional<std::string> wait_line(ChildProcess& child, Clock::time_point deadline, bool& closed) {
  closed = false;
  for (;;) {
    if (auto line = child.next_line()) return line;
    const double left = seconds_until(deadline);
    if (left <= 0 || closed) return std::nullopt;
    pollfd poll_fd{child.answer_fd(), POLLIN, 0};
    ::poll(&poll_fd, 1, static_cast<int>(left * 1000) + 1);
    if (poll_fd.revents != 0) closed = !child.read_available();
  }
}

std::string with_last_words(std::string text, const ChildProcess& child) {
  const std::string last = last_line(child.log());
  return last.empty() ? text : text + "; it last wrote: " + last;
}

Hello read_hello(ChildProcess& child, double timeout_s, Clock::time_point deadline) {
  Hello hello;
  bool closed = false;
  const std::optional<std::string> line = wait_line(child, deadline, closed);
  if (!line) {
    if (!closed) child.kill();
    hello.error = closed ? with_last_words("its worker ended before its hello: " + child.wait(), child)
                         : "its worker sent no hello within " + seconds_text(timeout_s);
    return hello;
  }
  try {
    return hello_from_json(nlohmann::ordered_json::parse(*line));
  } catch (const std::exception& error) {
    hello.error = error.what();
    return hello;
  }
}

}  // namespace

// One worker and the case it is judging. All variants of a case are queued in one lane, so that its worker
// makes the input once.
struct Supervisor::Lane {
  size_t source = 0;
  std::unique_ptr<ChildProcess> child;
  std::deque<Task> waiting;
  std::optional<Task> task;
  Clock::time_point began, deadline;
};

std::unique_ptr<ChildProcess> Supervisor::start(const Source& source) {
  // libgomp reads this when it is loaded, so it must be set before exec. Spinning threads would starve the
  // other workers.
  return std::make_unique<ChildProcess>(program_path(), worker_arguments(source.options),
                                        environment_with({"OMP_WAIT_POLICY=passive"}),
                                        source.logs / ("worker_" + std::to_string(++started_) + ".log"));
}

void Supervisor::greet(double timeout_s) {
  for (Source& source : sources_) source.idle = start(source);
  const Clock::time_point deadline = in_seconds(timeout_s);
  for (Source& source : sources_) {
    source.hello = read_hello(*source.idle, timeout_s, deadline);
    if (!source.hello.error.empty()) source.idle.reset();
  }
}

std::unique_ptr<ChildProcess> Supervisor::start_greeted(Source& source, std::string& error) {
  if (source.idle) return std::move(source.idle);
  if (!source.hello.error.empty()) {
    error = source.hello.error;
    return nullptr;
  }
  std::unique_ptr<ChildProcess> child = start(source);
  error = read_hello(*child, kGreetingTimeoutS, in_seconds(kGreetingTimeoutS)).error;
  if (error.empty()) return child;
  source.hello.error = error = "no new worker could be started: " + error;
  return nullptr;
}

namespace {

Verdict broken(const Source& source, const Task& task, Status status, std::string reason,
               Clock::time_point began) {
  Verdict verdict;
  verdict.case_id = task.name.id;
  verdict.provider = source.hello.provider;
  verdict.variant = task.name.variant;
  verdict.status = status;
  verdict.reason = std::move(reason);
  verdict.rerun = rerun_line(source.options.context, task.name.full_id);
  verdict.wall_us = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
  return verdict;
}

// Parses a worker's line as the verdict of the task in flight. Nonsense counts as the worker's fault.
std::optional<Verdict> parse_answer(const std::string& line, const Task& task, std::string& nonsense) {
  try {
    const nlohmann::ordered_json json = nlohmann::ordered_json::parse(line);
    Verdict verdict = verdict_from_json(json);
    verdict.spoils_worker = json.contains(kSpoiltKey);
    if (verdict.full_id() == task.name.full_id) return verdict;
    nonsense = "its worker answered for a different case: " + verdict.full_id();
  } catch (const std::exception& error) {
    nonsense = std::string("its worker wrote a line that is not a verdict: ") + error.what();
  }
  return std::nullopt;
}

}  // namespace

void Supervisor::run(const std::vector<Task>& tasks, unsigned jobs, const OnVerdict& on_verdict,
                     const OnWait& on_wait) {
  std::vector<std::deque<Task>> queues(sources_.size());
  for (const Task& task : tasks) queues[task.source].push_back(task);
  std::vector<Lane> lanes;
  bool go_on = true;

  // Opens a lane for the source with the longest queue per lane. Returns false if no source needs another
  // lane.
  const auto open_lane = [&] {
    size_t best = sources_.size();
    size_t most = 0;
    for (size_t i = 0; i < queues.size(); ++i) {
      const size_t running =
          std::count_if(lanes.begin(), lanes.end(), [&](const Lane& lane) { return lane.source == i; });
      const size_t share = queues[i].size() / (running + 1);
      if (queues[i].size() > running * 8 && share + 1 > most && !queues[i].empty())
        best = i, most = share + 1;
    }
    if (best == sources_.size()) return false;
    lanes.push_back({best, nullptr, {}, std::nullopt, {}, {}});
    return true;
  };
  const auto finish = [&](Lane& lane, Verdict verdict) {
    lane.task.reset();
    go_on = on_verdict(std::move(verdict)) && go_on;
  };
  // Returns false if nothing is left for the lane.
  const auto refill = [&](Lane& lane) {
    std::deque<Task>& queue = queues[lane.source];
    if (!lane.waiting.empty()) return true;
    while (!queue.empty() && (lane.waiting.empty() || queue.front().name.id == lane.waiting.back().name.id)) {
      lane.waiting.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return !lane.waiting.empty();
  };
  // Gives the lane its next case. Returns false if its queue is empty.
  const auto feed = [&](Lane& lane) {
    Source& source = sources_[lane.source];
    while (go_on && refill(lane)) {
      lane.task = std::move(lane.waiting.front());
      lane.waiting.pop_front();
      lane.began = Clock::now();
      std::string error;
      if (!lane.child) lane.child = start_greeted(source, error);
      lane.deadline = in_seconds(lane.task->timeout_s);
      if (lane.child && lane.child->send_line(lane.task->key)) return true;
      if (lane.child) error = "its worker stopped reading: " + (lane.child->kill(), lane.child->wait());
      lane.child.reset();
      finish(lane, broken(source, *lane.task, Status::crash, error, lane.began));
    }
    return false;
  };
  // Handles a line of the lane's worker, or its end.
  const auto attend = [&](Lane& lane, bool readable) {
    Source& source = sources_[lane.source];
    const bool open = !readable || lane.child->read_available();
    std::string nonsense;
    const auto too_late = [&] {
      lane.child.reset();
      const std::string text = "no verdict within " + seconds_text(lane.task->timeout_s);
      finish(lane, broken(source, *lane.task, Status::timeout, text, lane.began));
    };
    if (const auto line = lane.child->next_line()) {
      if (auto verdict = parse_answer(*line, *lane.task, nonsense)) {
        // By the worker's own clock, so that a busy parent causes no timeouts.
        if (verdict->wall_us > lane.task->timeout_s * 1e6) return too_late();
        if (verdict->spoils_worker) lane.child.reset();
        return finish(lane, std::move(*verdict));
      }
      lane.child.reset();
      return finish(lane, broken(source, *lane.task, Status::crash, nonsense, lane.began));
    }
    if (!open) {
      std::string ending = with_last_words("its worker died: " + lane.child->wait(), *lane.child);
      const uint64_t limit_bytes = source.options.memory_limit_bytes;
      const bool full = limit_bytes != 0 && lane.child->peak_resident_bytes() > limit_bytes / 10 * 9;
      if (full) ending = "reached the memory limit of " + mib_text(limit_bytes) + ": " + ending;
      lane.child.reset();
      return finish(lane,
                    broken(source, *lane.task, full ? Status::resource : Status::crash, ending, lane.began));
    }
    if (seconds_until(lane.deadline) <= 0) too_late();
  };

  while (go_on) {
    while (lanes.size() < std::max(1u, jobs) && open_lane()) {
    }
    for (size_t i = 0; i < lanes.size();) {
      if (lanes[i].task || feed(lanes[i])) {
        ++i;
        continue;
      }
      if (lanes[i].child && !sources_[lanes[i].source].idle)
        sources_[lanes[i].source].idle = std::move(lanes[i].child);
      lanes.erase(lanes.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const bool more =
        std::any_of(queues.begin(), queues.end(), [](const auto& queue) { return !queue.empty(); });
    if (lanes.empty() && !more) break;
    if (lanes.empty()) continue;

    std::vector<pollfd> polls;
    std::vector<std::string> in_flight;
    double patience_s = 0.25;
    for (const Lane& lane : lanes) {
      polls.push_back({lane.child->answer_fd(), POLLIN, 0});
      in_flight.push_back(lane.task->name.full_id);
      patience_s = std::min(patience_s, std::max(0.0, seconds_until(lane.deadline)));
    }
    ::poll(polls.data(), polls.size(), static_cast<int>(patience_s * 1000) + 1);
    for (size_t i = 0; i < lanes.size(); ++i) attend(lanes[i], polls[i].revents != 0);
    go_on = on_wait(in_flight) && go_on;
  }
}

}  // namespace qcts
