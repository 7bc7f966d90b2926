// SPDX-License-Identifier: BSD-3-Clause
#include "kernels/fakecuda/state.h"

#include <chrono>
#include <cstdlib>
#include <sstream>
#include <thread>

#include <unistd.h>

namespace qcts::fakecuda {

Faults::Faults() {
  const char* given = std::getenv("QCTS_FAKECUDA_FAULTS");
  std::istringstream list(given == nullptr ? "" : given);
  for (std::string each; std::getline(list, each, ',');) {
    const size_t colon = each.find(':'), equal = each.find('=');
    if (colon == each.npos || equal == each.npos || equal < colon) continue;
    const std::string result = each.substr(equal + 1);
    faults_.push_back({each.substr(0, colon), std::atoi(each.substr(colon + 1, equal - colon - 1).c_str()),
                       result == "hang" ? -1 : std::atoi(result.c_str())});
  }
}

int Faults::next(const std::string& function) {
  int call = 0;
  {
    const std::lock_guard lock(mutex_);
    call = ++calls_[function];
  }
  for (const Fault& fault : faults_) {
    if (fault.function != function || fault.call != call) continue;
    while (fault.result < 0) ::pause();
    return fault.result;
  }
  return kSuccess;
}

// A library of the process may have changed the variable.
std::optional<double> Script::next() {
  const std::lock_guard lock(mutex_);
  const char* given = std::getenv(variable_);
  std::istringstream list(given == nullptr ? "" : given);
  std::vector<double> times_us;
  for (std::string each; std::getline(list, each, ',');) times_us.push_back(std::atof(each.c_str()));
  if (times_us.empty()) return std::nullopt;
  return times_us[at_++ % times_us.size()];
}

State& state() {
  static State* const of_process = new State;  // outlives the threads that still wait
  return *of_process;
}

int begin(const char* function) {
  const int planted = state().faults.next(function);
  return planted != kSuccess ? planted : state().sticky;
}

void stick(int result, const char* text) {
  const std::lock_guard lock(state().mutex);
  if (state().sticky != kSuccess) return;
  state().sticky = result;
  state().sticky_text = text;
}

namespace {

using Clock = std::chrono::steady_clock;

// A sleep may last 50 us longer than it was asked for.
void wait_until(Clock::time_point end) {
  constexpr std::chrono::microseconds kSpin{200};
  if (end - Clock::now() > kSpin) std::this_thread::sleep_until(end - kSpin);
  while (Clock::now() < end) {
  }
}

// Runs the work, for as long as the script says if it is a launch.
const char* run_timed(const Work& work) {
  const auto start = Clock::now();
  const char* const why = work.run();
  if (work.is_launch)
    if (const std::optional<double> us = state().launch_us.next())
      wait_until(start + std::chrono::nanoseconds(static_cast<int64_t>(*us * 1e3)));
  return why;
}

}  // namespace

int drain(Stream& stream) {
  const std::lock_guard doing(stream.worked);
  for (;;) {
    Work work;
    {
      const std::lock_guard lock(stream.mutex);
      if (stream.queue.empty()) return state().sticky;
      work = std::move(stream.queue.front());
      stream.queue.pop_front();
    }
    const int planted = work.is_launch ? state().faults.next("launch") : int{kSuccess};
    const bool is_dead = state().sticky != kSuccess;
    if (planted != kSuccess) stick(planted, "planted by QCTS_FAKECUDA_FAULTS");
    if (planted == kSuccess && !is_dead)
      if (const char* why = run_timed(work); why != nullptr) stick(kLaunchFailed, why);
    if (work.is_gate) --stream.gates;
    work.drop();
  }
}

}  // namespace qcts::fakecuda
