// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/busy_threads.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "suites/timing/timed_target.h"

namespace qcts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFallAsleep{20}, kRest{20}, kCalling{40};
constexpr int kTrials = 3;

double elapsed_s(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Times samples for a while, each as long as a sample of this target has to be.
void call_for(TimedTarget& target, std::chrono::milliseconds length) {
  const auto end = Clock::now() + length;
  size_t copy = 0, calls = 1;
  do {
    const double us = target.time_us(copy, calls, true);
    copy = (copy + calls) % target.copies();
    calls = std::clamp<size_t>(static_cast<size_t>(target.good_sample_us() / std::max(us, 0.01)), 1,
                               target.max_calls(true));
  } while (Clock::now() < end);
}

}  // namespace

BusyThreads count_busy_threads(TimedTarget& target, Seconds spent) {
  const auto cpu_seconds = [&] { return spent ? spent() : target.cpu_seconds(); };
  std::this_thread::sleep_for(kFallAsleep);
  BusyThreads busy;
  auto start = Clock::now();
  double before = cpu_seconds();
  std::this_thread::sleep_for(kRest);
  busy.resting = (cpu_seconds() - before) / elapsed_s(start);
  const BatchTime earlier = target.spent();
  start = Clock::now();
  before = cpu_seconds();
  call_for(target, kCalling);
  busy.calling = spent ? (spent() - before) / elapsed_s(start)
                       : (target.spent().cpu_us - earlier.cpu_us) /
                             std::max(target.spent().wall_us - earlier.wall_us, 1e-3);
  return busy;
}

std::string too_many_threads(TimedTarget& target, uint32_t threads, BusyThreads& busy, Seconds spent) {
  for (int trial = 0; trial < kTrials; ++trial) {
    busy = count_busy_threads(target, spent);
    if (busy.calling - busy.resting <= threads + kBusyMargin) return {};
  }
  char text[80];
  std::snprintf(text, sizeof text, "keeps %.1f threads busy (limit %u)", busy.calling, threads);
  return text;
}

}  // namespace qcts
