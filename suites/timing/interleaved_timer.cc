// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/interleaved_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "suites/timing/stats.h"

namespace qcts {
namespace {

using RoundClock = std::chrono::steady_clock;

constexpr double kRoundConfidence = 0.95;
constexpr double kCloseEnough = 0.01;  // stop when the log-ratio's interval has this half-width
constexpr double kLongCallUs = 50e3;   // longer ones are warm enough after one call
// A series' threads fell asleep while others ran. Waking them took 16 us of a 40 us call (EPYC Zen 4, two
// threads), but is 0.3 % of this.
constexpr double kAwakeUs = 5e3;
constexpr size_t kMinRounds = 3, kMaxRounds = 3000, kFirstCheck = 64;
constexpr size_t kRarest = 8;
constexpr double kWantedRounds = 24;

double seconds_since(RoundClock::time_point start) {
  return std::chrono::duration<double>(RoundClock::now() - start).count();
}

// Returns the length of a sample, the same for all series, so that all means are taken over the same
// disturbances. It is shorter where the budget would not suffice for the rounds that an interval needs;
// judging the answers takes about as long as the calls.
double sample_us_of(const std::vector<Series>& series, double budget_s) {
  double least = 0, good = 0;
  for (const Series& entry : series) {
    least = std::max(least, entry.target->min_sample_us());
    good = std::max(good, entry.target->good_sample_us());
  }
  const double affordable = budget_s * 1e6 / (2 * kWantedRounds * static_cast<double>(series.size()));
  return std::clamp(affordable, least, std::max(least, good));
}

// Short calls are timed several at a time.
void warm_up(std::vector<Series>& series, double budget_s) {
  const double sample_us = sample_us_of(series, budget_s);
  for (Series& entry : series) {
    entry.time_once();
    if (entry.last_us > kLongCallUs) continue;
    const double wanted = std::ceil(sample_us / std::max(entry.last_us, 0.01));
    entry.inner = std::clamp<size_t>(static_cast<size_t>(wanted), 1, entry.target->max_calls(entry.cold));
    entry.time_once();
  }
  // The cost of a sample's beginning and end is a part of it that depends on its length.
  for (Series& entry : series)
    for (const Series& other : series)
      if (entry.target->timed() == other.target->timed()) entry.inner = std::max(entry.inner, other.inner);
  for (size_t i = 1; i < series.size(); ++i)
    series[i].every = std::clamp<size_t>(
        static_cast<size_t>(series[i].sample_us() / (2 * series[0].sample_us())), 1, kRarest);
}

bool all_known(const std::vector<Series>& series, uint64_t seed) {
  for (size_t i = 1; i < series.size(); ++i) {
    const Interval ratio = abba_interval(series[i].us, series[0].us, kRoundConfidence, seed);
    if (!(std::log(ratio.high / ratio.low) / 2 < kCloseEnough)) return false;
  }
  return true;
}

}  // namespace

const Series* find_series(std::span<const Series> series, std::string_view name) {
  const auto found = std::ranges::find(series, name, &Series::name);
  return found == series.end() ? nullptr : &*found;
}

size_t Series::take_copies(size_t count) {
  const size_t first = next_copy;
  if (cold) next_copy = (next_copy + count) % target->copies();
  return first;
}

double Series::time_once() {
  if (!cold || sample_us() < kAwakeUs) target->wake(take_copies(1));
  last_us = target->time_us(take_copies(inner), inner, cold);
  return last_us * scale;
}

void time_rounds(std::vector<Series>& series, double budget_s, uint64_t seed) {
  warm_up(series, budget_s);
  const auto start = RoundClock::now();
  size_t next_check = kFirstCheck;
  for (size_t round = 0; round < kMaxRounds; ++round) {
    if (round >= kMinRounds && seconds_since(start) >= budget_s) return;
    const size_t pair = round / 2;
    for (size_t i = 0; i < series.size(); ++i) {
      const size_t place = round % 2 == 0 ? i : series.size() - 1 - i;
      Series& entry = series[(pair + place) % series.size()];
      const bool takes_part = pair % entry.every == 0;
      entry.us.push_back(takes_part ? entry.time_once() : std::numeric_limits<double>::quiet_NaN());
    }
    if (round + 1 != next_check) continue;
    next_check *= 2;
    if (all_known(series, seed)) return;
  }
}

}  // namespace qcts
