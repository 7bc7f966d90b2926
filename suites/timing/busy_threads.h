// SPDX-License-Identifier: BSD-3-Clause
// Counts the threads that a kernel keeps busy, from the CPU time of its whole process while it runs.
// A kernel with more threads than the problem allows would have an unfair advantage.
#pragma once

#include <cstdint>
#include <string>

namespace qcts {

class TimedTarget;

// CPU time of all threads of the process that runs a kernel, and of its children, divided by elapsed time.
// 1.0 stands for one thread that never waits.
struct BusyThreads {
  double resting = 0;  // between calls
  double calling = 0;  // during calls
};

// A larger excess than this is not an error of the clock.
// The CPU time of a thread on another core is accurate to one tick (4 ms of 40), and is never overstated.
inline constexpr double kBusyMargin = 0.25;

// A clock that counts seconds. Only differences matter.
using Seconds = double (*)();

// Runs for 80 ms, or for 40 ms and one call if that is longer.
// First waits until idle OpenMP threads have stopped spinning.
// Other load on the machine can only lower the result. `spent` counts in place of the target's CPU time if it
// is not nullptr. Throws the exceptions of the call.
BusyThreads count_busy_threads(TimedTarget& target, Seconds spent = nullptr);

// Returns an empty string if at most `threads` are busy, or else "keeps 2.0 threads busy (limit 1)".
// Counts up to three times before it reports an excess.
std::string too_many_threads(TimedTarget& target, uint32_t threads, BusyThreads& busy,
                             Seconds spent = nullptr);

}  // namespace qcts
