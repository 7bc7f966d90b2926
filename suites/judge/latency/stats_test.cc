// SPDX-License-Identifier: BSD-3-Clause
// Checks the statistics on data with known answers, and the intervals' coverage.
#include "suites/timing/stats.h"

#include <cmath>

#include <gtest/gtest.h>

#include "reference/numerics/noise.h"
#include "reports/latency_trust.h"
#include "suites/judge/latency/latency_measures.h"

namespace qcts {
namespace {

std::vector<double> noise_samples(uint64_t seed, size_t count, double location, double spread) {
  std::vector<double> samples(count);
  for (size_t i = 0; i < count; ++i) samples[i] = location + spread * noise(seed, i);
  return samples;
}

TEST(Stats, MedianOfKnownNumbers) {
  EXPECT_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median(std::vector<double>{5}), 5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Stats, OneOutlierDoesNotMoveTheMedian) { EXPECT_EQ(median(std::vector<double>{1, 1, 1, 1, 1e9}), 1); }

// 400 experiments of 60 samples around a known median: a 95 % interval must contain it in 95 % of them. The
// limits are six standard deviations of a binomial around 0.95, lower at the bottom because a percentile
// bootstrap of 60 samples is known to cover slightly too little.
TEST(Stats, BootstrapCoversWhatItPromises) {
  int covered = 0;
  constexpr int kExperiments = 400;
  for (int i = 0; i < kExperiments; ++i) {
    const Interval interval =
        bootstrap_median(noise_samples(1000 + static_cast<uint64_t>(i), 60, 7.0, 1.0), 1, 0.95, 400, 5);
    covered += interval.low <= 7.0 && 7.0 <= interval.high;
  }
  EXPECT_GE(covered, static_cast<int>(0.90 * kExperiments));
  EXPECT_LE(covered, static_cast<int>(0.995 * kExperiments));
}

// Neighbours that drift together carry less information than independent ones: blocks must widen the
// interval.
TEST(Stats, BlocksWidenTheIntervalOfDriftingSamples) {
  std::vector<double> drifting(200);
  for (size_t i = 0; i < drifting.size(); ++i) drifting[i] = noise(3, i / 10) + 0.01 * noise(4, i);
  const Interval single = bootstrap_median(drifting, 1, 0.95, 1000, 9),
                 blocks = bootstrap_median(drifting, 10, 0.95, 1000, 9);
  EXPECT_GT(blocks.high - blocks.low, 1.5 * (single.high - single.low));
}

TEST(Stats, TheSameSamplesGiveTheSameInterval) {
  const std::vector<double> samples = noise_samples(1, 100, 0, 1);
  const Interval a = bootstrap_median(samples, 5, 0.95, 500, 2),
                 b = bootstrap_median(samples, 5, 0.95, 500, 2);
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
}

TEST(Stats, TooFewBlocksSayNothing) {
  const Interval interval = bootstrap_median(std::vector<double>(49, 1.0), 10, 0.95, 100, 1);
  EXPECT_TRUE(std::isinf(interval.low) && std::isinf(interval.high));
  EXPECT_EQ(decide_at_least(interval, 0.5), Decision::undecided);
}

TEST(Stats, RatioOfPairsCancelsWhatBothSaw) {
  std::vector<double> denominator(100), numerator(100);
  for (size_t i = 0; i < 100; ++i) {
    denominator[i] = 1.0 + static_cast<double>(i % 7);  // machine noise that both samples share
    numerator[i] = 1.25 * denominator[i];
  }
  const Interval ratio = ratio_interval(numerator, denominator, 10, 0.95, 1);
  EXPECT_NEAR(ratio.value, 1.25, 1e-12);
  EXPECT_NEAR(ratio.low, 1.25, 1e-12);
  EXPECT_NEAR(ratio.high, 1.25, 1e-12);
  EXPECT_THROW(ratio_interval(numerator, std::vector<double>(99, 1.0), 10, 0.95, 1), std::invalid_argument);
}

// A 3 % slowdown must be found, and 0 % must not be reported.
TEST(Stats, ThreePercentAreFoundAndNoneAreNot) {
  int alarms = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    const std::vector<double> a = noise_samples(50 + 2 * i, 100, 100, 1.0),
                              b = noise_samples(51 + 2 * i, 100, 100, 1.0);
    std::vector<double> slowed = b;
    for (double& sample : slowed) sample *= 1.03;
    EXPECT_EQ(decide_at_least(ratio_interval(a, slowed, 10, 0.95, i), 1.0), Decision::missed);
    const Interval same = ratio_interval(a, b, 10, 0.95, i);
    alarms += same.low > 1.02 || same.high < 1 / 1.02;
  }
  EXPECT_EQ(alarms, 0);
}

// Times of at least 100, four in five of them a third longer, because a neighbour is at work.
std::vector<double> times_among_neighbours(uint64_t seed, size_t count) {
  std::vector<double> us(count);
  for (size_t i = 0; i < count; ++i) {
    const auto part = [&](uint64_t salt) {
      return static_cast<double>(splitmix64(seed + salt, i) >> 11) * 0x1p-53;
    };
    us[i] = (100 + 20 * part(0)) * (part(1) < 0.8 ? 1.33 : 1);
  }
  return us;
}

// An interval of 95 % below the smallest sample has to contain the shortest possible time in 95 % of the
// experiments; the limits are five standard deviations of a binomial.
TEST(Fastest, CoversTheShortestPossibleTime) {
  int covered = 0;
  constexpr int kExperiments = 400;
  double width = 0;
  for (uint64_t i = 0; i < kExperiments; ++i) {
    const Interval interval = fastest(times_among_neighbours(1000 + 10 * i, 200));
    EXPECT_GE(interval.value, 100);
    EXPECT_EQ(interval.high, interval.value);
    covered += interval.low <= 100;
    width += (interval.high - interval.low) / interval.value / kExperiments;
  }
  EXPECT_GE(covered, static_cast<int>(0.895 * kExperiments));
  EXPECT_LE(covered, static_cast<int>(0.999 * kExperiments));
  EXPECT_LT(width, 0.03);
}

TEST(Fastest, LeavesOutWhatWasNotTimedAndSaysNothingOfFewSamples) {
  std::vector<double> us = times_among_neighbours(3, 50);
  const Interval whole = fastest(us);
  us.insert(us.begin() + 20, std::nan(""));
  EXPECT_EQ(fastest(us).low, whole.low);
  EXPECT_EQ(fastest(us).samples, 50u);
  const Interval few = fastest(std::vector<double>{3, 1, 2, 4, 5, 6, 7});
  EXPECT_EQ(few.value, 1);
  EXPECT_TRUE(std::isinf(few.low) && std::isinf(few.high));
  EXPECT_TRUE(std::isnan(fastest({}).value));
  EXPECT_EQ(fastest(std::vector<double>(20, 7.0)).low, 7) << "a clock with long ticks";
}

TEST(Abba, WhatAPlaceInTheOrderCostsCancels) {
  std::vector<double> first(40), second(40);
  for (size_t round = 0; round < 40; ++round) {
    const bool forward = round % 2 == 0;  // the first in a round is 5 % slower
    first[round] = 200 * (forward ? 1.05 : 1.0);
    second[round] = 100 * (forward ? 1.0 : 1.05);
  }
  const Interval ratio = abba_interval(first, second, 0.95, 1);
  EXPECT_NEAR(ratio.value, 2, 1e-12);
  EXPECT_NEAR(ratio.low, 2, 1e-12);
  EXPECT_NEAR(ratio.high, 2, 1e-12);
  EXPECT_EQ(ratio.samples, 20u);
}

TEST(Abba, LeavesOutWhatWasNotTimed) {
  const double nan = std::nan("");
  std::vector<double> first, second;
  for (size_t pair = 0; pair < 24; ++pair) {
    const bool timed = pair % 2 == 0;
    for (int i = 0; i < 2; ++i) {
      first.push_back(timed ? 3 : nan);
      second.push_back(timed ? 2 : 2 + static_cast<double>(pair));
    }
  }
  first.push_back(1000);  // a round without its pair
  second.push_back(1);
  const Interval ratio = abba_interval(first, second, 0.95, 1);
  EXPECT_NEAR(ratio.value, 1.5, 1e-12);
  EXPECT_EQ(ratio.samples, 12u);
  EXPECT_TRUE(std::isinf(abba_interval(std::vector<double>(4, 1), std::vector<double>(4, 1), 0.95, 1).high));
  EXPECT_THROW(abba_interval(first, std::vector<double>(3, 1), 0.95, 1), std::invalid_argument);
}

// A simulated machine: a clock that drifts by 5 %, noise of 1.5 %, one call in twelve preempted, and a
// penalty of 1 % for the first place in a round.
struct SimulatedMachine {
  uint64_t seed;

  double us(uint64_t series, size_t round, bool comes_first, double truth) const {
    const uint64_t at = 16 * round + series;
    const double clock = 1 + 0.05 * std::sin(0.03 * static_cast<double>(round + seed % 97));
    const bool robbed = splitmix64(seed + 1, at) % 12 == 0;
    return truth * clock * (1 + 0.015 * noise(seed, at)) * (robbed ? 3.0 : 1.0) * (comes_first ? 1.01 : 1.0);
  }

  Interval against_itself(double slower, size_t rounds) const {
    std::vector<double> a(rounds), b(rounds);
    for (size_t round = 0; round < rounds; ++round) {
      a[round] = us(0, round, round % 2 == 0, 100);
      b[round] = us(1, round, round % 2 != 0, 100 * slower);
    }
    return abba_interval(b, a, 0.95, seed);
  }
};

// Tests the tester on a machine whose true ratio is known: 50 runs of 8 cases. The interval alone misses the
// truth in its nominal 5 % of cases and the alarm (with a margin of 2 %) in none; 3 % is found, 0 % is not.
TEST(InterleavedTimer, AlarmsAsDeclaredAndFindsThreePercent) {
  constexpr int kRuns = 50, kCases = 8, kRounds = 300;
  int outside = 0, alarming = 0, found = 0, found_nothing = 0;
  for (uint64_t i = 0; i < kRuns * kCases; ++i) {
    const SimulatedMachine machine{7000 + 2 * i};
    const Interval same = machine.against_itself(1.0, kRounds);
    outside += same.low > 1 || same.high < 1;
    alarming += alarms(same);
    found_nothing += decide_at_least(same, 1.01) == Decision::met;
    found += decide_at_least(machine.against_itself(1.03, kRounds), 1.0) == Decision::met;
  }
  EXPECT_LE(outside, static_cast<int>(allowed_alarms(kRuns * kCases)));
  EXPECT_GT(outside, 0) << "an interval that never misses covers more than 95 %";
  EXPECT_EQ(alarming, 0);
  EXPECT_EQ(found_nothing, 0);
  EXPECT_GE(found, kRuns * kCases * 95 / 100);
}

TEST(Stats, DecisionsHaveThreeValues) {
  EXPECT_EQ(decide_at_least({1.2, 1.1, 1.3, 50}, 1.0), Decision::met);
  EXPECT_EQ(decide_at_least({0.8, 0.7, 0.9, 50}, 1.0), Decision::missed);
  EXPECT_EQ(decide_at_least({1.0, 0.9, 1.1, 50}, 1.0), Decision::undecided);
}

}  // namespace
}  // namespace qcts
