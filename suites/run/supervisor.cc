// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/supervisor.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>

#include <poll.h>

#include "suites/base/memory.h"
#include "suites/base/paths.h"
#include "suites/cases/case_key.h"

namespace qcts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kHandshakeTimeoutS = 120;  // LibTorch from a cold disk

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

WorkerReady read_ready(ChildProcess& child, double timeout_s, Clock::time_point deadline) {
  WorkerReady ready;
  bool closed = false;
  const std::optional<std::string> line = wait_line(child, deadline, closed);
  if (!line) {
    if (!closed) child.kill();
    ready.error = closed ? with_last_words("its worker ended before the handshake: " + child.wait(), child)
                         : "its worker did not answer the handshake within " + seconds_text(timeout_s);
    return ready;
  }
  try {
    return worker_ready_from_json(nlohmann::ordered_json::parse(*line));
  } catch (const std::exception& error) {
    ready.error = error.what();
    return ready;
  }
}

}  // namespace

// One worker and the case it is judging. All variants of a case are queued in one worker, so that its worker
// makes the input once.
struct Supervisor::WorkerSlot {
  size_t slot = 0;
  std::unique_ptr<ChildProcess> child;
  std::deque<Task> waiting;
  std::optional<Task> task;
  Clock::time_point began, deadline;
};

std::unique_ptr<ChildProcess> Supervisor::start(const ProviderSlot& slot) {
  // libgomp reads this when it is loaded, so it must be set before exec. Spinning threads would starve the
  // other workers.
  return std::make_unique<ChildProcess>(program_path(), worker_arguments(slot.options),
                                        environment_with({"OMP_WAIT_POLICY=passive"}),
                                        slot.logs / ("worker_" + std::to_string(++started_) + ".log"));
}

void Supervisor::handshake(double timeout_s) {
  for (ProviderSlot& slot : slots_) slot.idle = start(slot);
  const Clock::time_point deadline = in_seconds(timeout_s);
  for (ProviderSlot& slot : slots_) {
    slot.ready = read_ready(*slot.idle, timeout_s, deadline);
    if (!slot.ready.error.empty()) slot.idle.reset();
  }
}

std::unique_ptr<ChildProcess> Supervisor::start_with_handshake(ProviderSlot& slot, std::string& error) {
  if (slot.idle) return std::move(slot.idle);
  if (!slot.ready.error.empty()) {
    error = slot.ready.error;
    return nullptr;
  }
  std::unique_ptr<ChildProcess> child = start(slot);
  error = read_ready(*child, kHandshakeTimeoutS, in_seconds(kHandshakeTimeoutS)).error;
  if (error.empty()) return child;
  slot.ready.error = error = "no new worker could be started: " + error;
  return nullptr;
}

std::vector<bool> Supervisor::ask_support(size_t slot, std::span<const SupportQuestion> questions,
                                          double timeout_s) {
  std::vector<bool> answers(questions.size(), true);
  std::vector<size_t> open(questions.size());
  std::iota(open.begin(), open.end(), size_t{0});
  std::string error;
  while (!open.empty()) {
    std::unique_ptr<ChildProcess> child = start_with_handshake(slots_[slot], error);
    if (!child) break;  // every task of this slot will say so
    std::vector<std::string> keys;
    for (const size_t each : open)
      keys.push_back(case_key(*questions[each].asked, questions[each].offer->variant).dump());
    child->send_line(support_line(keys));
    size_t answered = 0;
    bool closed = false;
    while (answered < open.size()) {
      const std::optional<std::string> line = wait_line(*child, in_seconds(timeout_s), closed);
      if (!line) break;
      answers[open[answered++]] = *line != "false";
    }
    if (answered == open.size()) {
      slots_[slot].idle = std::move(child);
      break;
    }
    const Offer* failed = questions[open[answered]].offer;
    open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(answered));
    std::erase_if(open, [&](size_t each) { return questions[each].offer == failed; });
  }
  return answers;
}

namespace {

// The kind needs neither the kernel nor a file.
std::string input_kind_of_key(const std::string& line) {
  nlohmann::ordered_json key = nlohmann::ordered_json::parse(line);
  if (!key.contains("synthetic")) return {};
  key.erase("variant");
  return input_kind_of_verdict(case_of_key(key, {}, Registry()));
}

Verdict broken(const ProviderSlot& slot, const Task& task, Status status, std::string reason,
               Clock::time_point began) {
  Verdict verdict;
  verdict.case_id = task.name.id;
  verdict.provider = slot.ready.provider;
  verdict.variant = task.name.variant;
  verdict.status = status;
  verdict.reason = std::move(reason);
  verdict.input_kind = input_kind_of_key(task.key);
  verdict.rerun = rerun_line(slot.options.context, task.name.full_id);
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
  std::vector<std::deque<Task>> queues(slots_.size());
  for (const Task& task : tasks) queues[task.slot].push_back(task);
  std::vector<WorkerSlot> workers;
  bool go_on = true;

  // Opens a worker for the slot with the longest queue per worker. Returns false if no slot needs another
  // worker.
  const auto open_worker_slot = [&] {
    size_t best = slots_.size();
    size_t most = 0;
    for (size_t i = 0; i < queues.size(); ++i) {
      const size_t running = std::count_if(workers.begin(), workers.end(),
                                           [&](const WorkerSlot& worker) { return worker.slot == i; });
      const size_t share = queues[i].size() / (running + 1);
      if (queues[i].size() > running * 8 && share + 1 > most && !queues[i].empty())
        best = i, most = share + 1;
    }
    if (best == slots_.size()) return false;
    workers.push_back({best, nullptr, {}, std::nullopt, {}, {}});
    return true;
  };
  const auto finish = [&](WorkerSlot& worker, Verdict verdict) {
    worker.task.reset();
    go_on = on_verdict(std::move(verdict)) && go_on;
  };
  // Returns false if nothing is left for the worker.
  const auto refill = [&](WorkerSlot& worker) {
    std::deque<Task>& queue = queues[worker.slot];
    if (!worker.waiting.empty()) return true;
    while (!queue.empty() &&
           (worker.waiting.empty() || queue.front().name.id == worker.waiting.back().name.id)) {
      worker.waiting.push_back(std::move(queue.front()));
      queue.pop_front();
    }
    return !worker.waiting.empty();
  };
  // Gives the worker its next case. Returns false if its queue is empty.
  const auto feed = [&](WorkerSlot& worker) {
    ProviderSlot& slot = slots_[worker.slot];
    while (go_on && refill(worker)) {
      worker.task = std::move(worker.waiting.front());
      worker.waiting.pop_front();
      worker.began = Clock::now();
      std::string error;
      if (!worker.child) worker.child = start_with_handshake(slot, error);
      worker.deadline = in_seconds(worker.task->timeout_s);
      if (worker.child && worker.child->send_line(worker.task->key)) return true;
      if (worker.child) error = "its worker stopped reading: " + (worker.child->kill(), worker.child->wait());
      worker.child.reset();
      finish(worker, broken(slot, *worker.task, Status::crash, error, worker.began));
    }
    return false;
  };
  // Handles a line of the worker's worker, or its end.
  const auto attend = [&](WorkerSlot& worker, bool readable) {
    ProviderSlot& slot = slots_[worker.slot];
    const bool open = !readable || worker.child->read_available();
    std::string nonsense;
    const auto too_late = [&] {
      worker.child.reset();
      const std::string text = "no verdict within " + seconds_text(worker.task->timeout_s);
      finish(worker, broken(slot, *worker.task, Status::timeout, text, worker.began));
    };
    if (const auto line = worker.child->next_line()) {
      if (auto verdict = parse_answer(*line, *worker.task, nonsense)) {
        // By the worker's own clock, so that a busy parent causes no timeouts.
        if (verdict->wall_us > worker.task->timeout_s * 1e6) return too_late();
        if (verdict->spoils_worker) worker.child.reset();
        return finish(worker, std::move(*verdict));
      }
      worker.child.reset();
      return finish(worker, broken(slot, *worker.task, Status::crash, nonsense, worker.began));
    }
    if (!open) {
      std::string ending = with_last_words("its worker died: " + worker.child->wait(), *worker.child);
      const uint64_t limit_bytes = slot.options.memory_limit_bytes;
      const bool full =
          kMemoryCounts && limit_bytes != 0 && worker.child->peak_resident_bytes() > limit_bytes / 10 * 9;
      if (full) ending = "reached the memory limit of " + mib_text(limit_bytes) + ": " + ending;
      worker.child.reset();
      return finish(
          worker, broken(slot, *worker.task, full ? Status::resource : Status::crash, ending, worker.began));
    }
    if (seconds_until(worker.deadline) <= 0) too_late();
  };

  while (go_on) {
    while (workers.size() < std::max(1u, jobs) && open_worker_slot()) {
    }
    for (size_t i = 0; i < workers.size();) {
      if (workers[i].task || feed(workers[i])) {
        ++i;
        continue;
      }
      if (workers[i].child && !slots_[workers[i].slot].idle)
        slots_[workers[i].slot].idle = std::move(workers[i].child);
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
    }
    const bool more =
        std::any_of(queues.begin(), queues.end(), [](const auto& queue) { return !queue.empty(); });
    if (workers.empty() && !more) break;
    if (workers.empty()) continue;

    std::vector<pollfd> polls;
    std::vector<std::string> in_flight;
    double patience_s = 0.25;
    for (const WorkerSlot& worker : workers) {
      polls.push_back({worker.child->answer_fd(), POLLIN, 0});
      in_flight.push_back(worker.task->name.full_id);
      patience_s = std::min(patience_s, std::max(0.0, seconds_until(worker.deadline)));
    }
    ::poll(polls.data(), polls.size(), static_cast<int>(patience_s * 1000) + 1);
    for (size_t i = 0; i < workers.size(); ++i) attend(workers[i], polls[i].revents != 0);
    go_on = on_wait(in_flight) && go_on;
  }
}

}  // namespace qcts
