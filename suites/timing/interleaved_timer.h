// SPDX-License-Identifier: BSD-3-Clause
// The interleaved timer: calls all targets in turn, one sample each per round.
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
  bool cold = true;  // rotates over its copies; otherwise always uses the first
  size_t next_copy = 0, inner = 1;
  std::vector<double> us = {};  // one entry per round: the time of one call; NaN if not timed in that round
  double scale = 1;             // a sample is the measured time multiplied by this
  size_t every = 1;             // timed in one of this many pairs of rounds
  double last_us = 0;           // of one call, unscaled

  size_t take_copies(size_t count);  // returns the first of the next `count`
  // Returns microseconds per call, from a sample of `inner` calls. Makes an untimed call first, so that
  // threads are awake and code is in the cache whichever series ran before; only long calls on cold weights
  // go without it.
  double time_once();
};

// Returns the series of this name; nullptr if there is none.
const Series* find_series(std::span<const Series> series, std::string_view name);

// Runs rounds until the first series' ratio to each other one is known closely enough or the budget is spent;
// at least 3. Two warm-up samples of each series (one if it is long) are discarded. Every other round runs
// backward, and each pair of rounds starts one series later, so that none is always first. A series much
// slower than the first skips pairs of rounds to save budget.
void time_rounds(std::vector<Series>& series, double budget_s, uint64_t seed);

}  // namespace qcts
