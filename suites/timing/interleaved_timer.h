// SPDX-License-Identifier: BSD-3-Clause
// The interleaved timer, which calls all targets in turn and takes one sample of each per round.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "suites/timing/timed_target.h"

namespace qcts {

struct Series {
  std::string name;
  TimedTarget* target;
  bool cold = true;  // true: rotates over its copies; false: always uses the first copy
  size_t next_copy = 0, inner = 1;
  std::vector<double> us = {};  // time of one call, one entry per round; NaN if not timed in that round
  double scale = 1;             // a sample is the measured time multiplied by this
  size_t every = 1;             // the series is timed in one of this many pairs of rounds
  double last_us = 0;           // time of one call, unscaled

  size_t take_copies(size_t count);  // returns the first of the next `count` copies
  // Returns microseconds per call, from a sample of `inner` calls. Makes an untimed call first.
  // After this call, threads are awake and code is in the cache, whichever series ran before.
  // Long samples on cold weights are the only ones without an untimed call.
  double time_once();
  double sample_us() const { return last_us * static_cast<double>(inner); }
};

// Returns the series of this name, or nullptr.
const Series* find_series(std::span<const Series> series, std::string_view name);

// Runs at least 3 rounds, and ends when the budget is spent.
// Ends earlier if the ratio of the first series to every other series is known closely enough.
// Discards two warm-up samples of each series, or one if the series is long.
// Every other round runs backward.
// Each pair of rounds starts one series later, so that no series is always first.
// A series that is much slower than the first skips pairs of rounds to save budget.
void time_rounds(std::vector<Series>& series, double budget_s, uint64_t seed);

}  // namespace qcts
