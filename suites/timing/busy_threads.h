// SPDX-License-Identifier: BSD-3-Clause
// How many threads a kernel keeps busy, by the processor time that this whole process spends while it runs:
// whoever uses more than the problem allows would be timed against others that do not.
#pragma once

#include <cstdint>
#include <string>

namespace qcts {

class Contender;

// Processor time over time, of all threads of this process: 1.0 is one thread that never waits.
struct BusyThreads {
  double resting = 0;  // nothing is called
  double calling = 0;  // the contender is, from this thread, again and again
};

// More than this above the allowed number is no error of the clocks. The processor time of a thread that runs
// elsewhere is known to its last tick, 4 ms of 40, and what is missing is never too much.
inline constexpr double kBusyMargin = 0.25;

// Seconds that some clock has counted; only differences matter.
using Seconds = double (*)();
// Of the processor, by all threads of this process.
double process_seconds();

// Takes 80 ms, or 40 ms and a call. Threads that spin for a while behind an earlier call have gone to sleep.
// Busy neighbours on the machine make it less, never more. Throws what a call throws.
BusyThreads count_busy_threads(Contender& contender, Seconds spent = process_seconds);

// Empty: no more than `threads`. Counted up to three times where it is more.
// "keeps 2.0 threads busy where 1 may be"
std::string too_many_threads(Contender& contender, uint32_t threads, BusyThreads& busy,
                             Seconds spent = process_seconds);

}  // namespace qcts
