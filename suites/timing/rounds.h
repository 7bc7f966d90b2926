// SPDX-License-Identifier: BSD-3-Clause
// The stopwatch: contenders called in turn, a sample each a round.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "suites/timing/contender.h"

namespace qcts {

struct Lane {
  std::string name;
  Contender* contender;
  bool cold = true;  // takes turns over its copies; otherwise it is always the first
  size_t next_copy = 0, inner = 1;
  std::vector<double> us = {};  // one entry a round: the time of one call; NaN: not timed in that round
  double scale = 1;             // of what is timed to what is wanted: a sample is the time times this
  size_t every = 1;             // timed in one of so many pairs of rounds
  double last_us = 0;           // of one call, unscaled

  size_t take_copies(size_t count);  // the first of the next `count`
  // us a call; a sample of `inner` of them. An untimed call goes before, so that the lane finds its threads
  // awake and its code in the cache whichever lane ran before it; only a long call on cold weights is spared
  // it.
  double time_once();
};

// Rounds until the first lane's ratio to every other is known closely enough, or the budget is spent; at
// least 3. Two samples of each lane (one of a long one) come before and are not kept. Every other round runs
// backward, and each pair of rounds begins one lane later, so that none is always the first. A lane that is
// much slower than the first sits out pairs of rounds, so that it does not eat the budget.
void time_rounds(std::vector<Lane>& lanes, double budget_s, uint64_t seed);

}  // namespace qcts
