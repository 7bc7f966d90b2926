#include "suites/rounds.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "suites/stats.h"

namespace qcts {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kConfidence = 0.95;
constexpr double kCloseEnough = 0.01;  // half-width of the log-ratio's interval at which a measurement stops
constexpr double kShortestTimedUs = 20;  // shorter calls are timed several at a time
constexpr size_t kFewestRounds = 3, kMostRounds = 3000, kFirstCheck = 32;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

double Lane::time_once() {
  const auto start = Clock::now();
  for (size_t i = 0; i < inner; ++i) {
    contender->call(cold ? next_copy : 0);
    next_copy = (next_copy + 1) % contender->copies();
  }
  return seconds_since(start) * 1e6 / static_cast<double>(inner);
}

void time_rounds(std::vector<Lane>& lanes, double budget_s, uint64_t seed) {
  for (Lane& lane : lanes) {
    const double once = lane.time_once();
    if (once < kShortestTimedUs)
      lane.inner = static_cast<size_t>(std::ceil(kShortestTimedUs / std::max(once, 0.01)));
    lane.time_once();
  }
  const auto start = Clock::now();
  size_t next_check = kFirstCheck;
  for (size_t round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && seconds_since(start) >= budget_s) return;
    for (size_t i = 0; i < lanes.size(); ++i) {
      Lane& lane = lanes[round % 2 == 0 ? i : lanes.size() - 1 - i];
      lane.us.push_back(lane.time_once());
    }
    if (round + 1 != next_check) continue;
    next_check *= 2;
    bool close = true;
    for (size_t i = 1; i < lanes.size(); ++i) {
      const Interval ratio =
          ratio_interval(lanes[i].us, lanes[0].us, block_length(round + 1), kConfidence, seed);
      close = close && std::log(ratio.high / ratio.low) / 2 < kCloseEnough;
    }
    if (close) return;
  }
}

}  // namespace qcts
