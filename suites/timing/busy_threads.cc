// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/busy_threads.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

#include "suites/timing/timed_target.h"

namespace qcts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFallAsleep{20}, kRest{20}, kCalling{40};
constexpr int kTrials = 3;

template <class Work>
double busy_during(Seconds spent, const Work& work) {
  const auto start = Clock::now();
  const double before = spent();
  work();
  return (spent() - before) / std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double process_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

BusyThreads count_busy_threads(TimedTarget& target, Seconds spent) {
  std::this_thread::sleep_for(kFallAsleep);
  BusyThreads busy;
  busy.resting = busy_during(spent, [] { std::this_thread::sleep_for(kRest); });
  busy.calling = busy_during(spent, [&] {
    const auto end = Clock::now() + kCalling;
    size_t copy = 0;
    do {
      target.call(copy);
      copy = (copy + 1) % target.copies();
    } while (Clock::now() < end);
  });
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
