#include "suites/busy_threads.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace qcts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kFallAsleep{20}, kRest{20}, kCalling{40};
constexpr int kTrials = 3;

double process_seconds() {
  timespec spent{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) * 1e-9;
}

template <class Work>
double busy_during(const Work& work) {
  const auto start = Clock::now();
  const double before = process_seconds();
  work();
  const double spent = process_seconds() - before;
  return spent / std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

BusyThreads count_busy_threads(Contender& contender) {
  std::this_thread::sleep_for(kFallAsleep);
  BusyThreads busy;
  busy.resting = busy_during([] { std::this_thread::sleep_for(kRest); });
  busy.calling = busy_during([&] {
    const auto end = Clock::now() + kCalling;
    size_t copy = 0;
    do {
      contender.call(copy);
      copy = (copy + 1) % contender.copies();
    } while (Clock::now() < end);
  });
  return busy;
}

std::string too_many_threads(Contender& contender, uint32_t threads, BusyThreads& busy) {
  for (int trial = 0; trial < kTrials; ++trial) {
    busy = count_busy_threads(contender);
    if (busy.calling - busy.resting <= threads + kBusyMargin) return {};
  }
  char text[80];
  std::snprintf(text, sizeof text, "keeps %.1f threads busy where %u may be", busy.calling, threads);
  return text;
}

}  // namespace qcts
