// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/workers/provider_slot.h"

#include <algorithm>
#include <numeric>

#include <poll.h>

#include "suites/base/paths.h"
#include "suites/cases/case_key.h"

namespace qcts {
namespace {

constexpr double kHandshakeTimeoutS = 120;  // LibTorch from a cold disk

// Returns the next complete line; nullopt after the deadline or if the child closed the pipe (`closed`).
std::optional<std::string> wait_line(ChildProcess& child, RunClock::time_point deadline, bool& closed) {
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

WorkerReady read_ready(const ProviderSlot& slot, ChildProcess& child, double timeout_s,
                       RunClock::time_point deadline) {
  WorkerReady ready;
  bool closed = false;
  const std::optional<std::string> line = wait_line(child, deadline, closed);
  if (!line) {
    if (!closed) child.kill();
    ready.error = closed
                      ? with_last_words("its worker ended before the handshake: " + child.wait(), child.log())
                      : "its worker did not answer the handshake within " + seconds_text(timeout_s);
  } else {
    try {
      ready = worker_ready_from_json(nlohmann::ordered_json::parse(*line));
    } catch (const std::exception& error) {
      ready.error = error.what();
    }
  }
  if (!ready.error.empty()) ready.error = with_log(std::move(ready.error), slot, child.log());
  return ready;
}

// Returns "LOGS/builtin_1.log". Slots may share the folder, and two providers the name of their file.
std::filesystem::path next_log(ProviderSlot& slot) {
  const std::string stem = std::filesystem::path(slot.given).stem().string();
  std::filesystem::path log;
  do log = slot.logs / (stem + "_" + std::to_string(++slot.started) + ".log");
  while (std::filesystem::exists(log));
  return log;
}

std::unique_ptr<ChildProcess> start_worker(ProviderSlot& slot) {
  // libgomp reads this when it is loaded, so it must be set before exec. Spinning threads would starve the
  // other workers.
  auto child = std::make_unique<ChildProcess>(program_path(), std::vector<std::string>{"worker"},
                                              environment_with({"OMP_WAIT_POLICY=passive"}), next_log(slot));
  child->send_line(to_json(slot.options).dump());
  return child;
}

}  // namespace

RunClock::time_point in_seconds(double seconds) {
  return RunClock::now() +
         std::chrono::duration_cast<RunClock::duration>(std::chrono::duration<double>(seconds));
}

double seconds_until(RunClock::time_point when) {
  return std::chrono::duration<double>(when - RunClock::now()).count();
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%g s", seconds);
  return text;
}

std::string with_log(std::string text, const ProviderSlot& slot, const std::filesystem::path& log) {
  std::error_code error;
  const std::filesystem::path& scratch = slot.options.settings.scratch;
  const auto inside = std::mismatch(scratch.begin(), scratch.end(), log.begin(), log.end());
  const bool goes = !scratch.empty() && inside.first == scratch.end();
  if (goes || std::filesystem::file_size(log, error) == 0 || error) return text;
  return text + "; its log: " + log.string();
}

void start_workers(std::vector<ProviderSlot>& slots, double timeout_s) {
  for (ProviderSlot& slot : slots) slot.idle = start_worker(slot);
  const RunClock::time_point deadline = in_seconds(timeout_s);
  for (ProviderSlot& slot : slots) {
    slot.ready = read_ready(slot, *slot.idle, timeout_s, deadline);
    if (!slot.ready.error.empty()) slot.idle.reset();
  }
}

std::unique_ptr<ChildProcess> take_worker(ProviderSlot& slot, std::string& error) {
  if (slot.idle) return std::move(slot.idle);
  if (!slot.ready.error.empty()) {
    error = slot.ready.error;
    return nullptr;
  }
  std::unique_ptr<ChildProcess> child = start_worker(slot);
  error = read_ready(slot, *child, kHandshakeTimeoutS, in_seconds(kHandshakeTimeoutS)).error;
  if (error.empty()) return child;
  slot.ready.error = error = "no new worker could be started: " + error;
  return nullptr;
}

std::vector<bool> ask_support(ProviderSlot& slot, std::span<const SupportQuestion> questions,
                              double timeout_s) {
  std::vector<bool> answers(questions.size(), true);
  std::vector<size_t> open(questions.size());
  std::iota(open.begin(), open.end(), size_t{0});
  std::string error;
  while (!open.empty()) {
    std::unique_ptr<ChildProcess> child = take_worker(slot, error);
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
      slot.idle = std::move(child);
      break;
    }
    const Offer* failed = questions[open[answered]].offer;
    open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(answered));
    std::erase_if(open, [&](size_t each) { return questions[each].offer == failed; });
  }
  return answers;
}

}  // namespace qcts
