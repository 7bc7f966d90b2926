// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "suites/timing/stats.h"

namespace qcts {
namespace {

using RoundClock = std::chrono::steady_clock;

constexpr double kRoundConfidence = 0.95;
constexpr double kCloseEnough = 0.01;    // stop when the log-ratio's interval has this half-width
constexpr double kShortestTimedUs = 20;  // shorter calls are timed several at a time
constexpr double kLongCallUs = 50e3;     // longer ones are warm enough after one call
// A series' threads fell asleep while others ran. Waking them took 16 us of a 40 us call (EPYC Zen 4, two
// threads), but is 0.3 % of this.
constexpr double kAwakeUs = 5e3;
constexpr size_t kFewestRounds = 3, kMostRounds = 3000, kFirstCheck = 64;
constexpr size_t kRarest = 8;

double seconds_since(RoundClock::time_point start) {
  return std::chrono::duration<double>(RoundClock::now() - start).count();
}

void warm_up(std::vector<Lane>& lanes) {
  std::vector<double> us;
  for (Lane& lane : lanes) {
    const double once = lane.time_once() / lane.scale;
    if (once < kShortestTimedUs)
      lane.inner = static_cast<size_t>(std::ceil(kShortestTimedUs / std::max(once, 0.01)));
    us.push_back(once > kLongCallUs ? once : lane.time_once() / lane.scale);
  }
  for (size_t i = 1; i < lanes.size(); ++i)
    lanes[i].every = std::clamp<size_t>(static_cast<size_t>(us[i] / (2 * us[0])), 1, kRarest);
}

bool all_known(const std::vector<Lane>& lanes, uint64_t seed) {
  for (size_t i = 1; i < lanes.size(); ++i) {
    const Interval ratio = abba_interval(lanes[i].us, lanes[0].us, kRoundConfidence, seed);
    if (!(std::log(ratio.high / ratio.low) / 2 < kCloseEnough)) return false;
  }
  return true;
}

}  // namespace

size_t Lane::take_copies(size_t count) {
  const size_t first = next_copy;
  if (cold) next_copy = (next_copy + count) % contender->copies();
  return first;
}

double Lane::time_once() {
  if (!cold || last_us < kAwakeUs) contender->time_us(take_copies(1), 1, cold);
  last_us = contender->time_us(take_copies(inner), inner, cold);
  return last_us * scale;
}

void time_rounds(std::vector<Lane>& lanes, double budget_s, uint64_t seed) {
  warm_up(lanes);
  const auto start = RoundClock::now();
  size_t next_check = kFirstCheck;
  for (size_t round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && seconds_since(start) >= budget_s) return;
    const size_t pair = round / 2;
    for (size_t i = 0; i < lanes.size(); ++i) {
      const size_t place = round % 2 == 0 ? i : lanes.size() - 1 - i;
      Lane& lane = lanes[(pair + place) % lanes.size()];
      const bool takes_part = pair % lane.every == 0;
      lane.us.push_back(takes_part ? lane.time_once() : std::numeric_limits<double>::quiet_NaN());
    }
    if (round + 1 != next_check) continue;
    next_check *= 2;
    if (all_known(lanes, seed)) return;
  }
}

}  // namespace qcts
