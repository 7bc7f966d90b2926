// SPDX-License-Identifier: BSD-3-Clause
// Tests the change points on series whose truth is known, with the noise that real runs recorded.
#include "suites/timing/change_points.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "reference/numerics/noise.h"

namespace qcts {
namespace {

// Logarithms of ratio_to_itself, the time of a kernel over its own in the same rounds, of the 35 latency
// cases of a nightly run (Zen 4, two cores): noise of about one percent, and one case in which a neighbour
// took ten.
constexpr double kRecordedNoise[] = {-0.0117, -0.0091, -0.0091, -0.0087, -0.0085, -0.0081, -0.0074,
                                     -0.0058, -0.0055, -0.0028, -0.0024, -0.0021, -0.0020, -0.0017,
                                     -0.0008, -0.0006, -0.0005, 0.0,     0.0001,  0.0002,  0.0004,
                                     0.0005,  0.0006,  0.0006,  0.0009,  0.0020,  0.0030,  0.0042,
                                     0.0136,  0.0148,  0.0189,  0.0190,  0.0191,  0.0248,  0.1029};
constexpr size_t kNights = 30;
constexpr uint64_t kHistories = 200;
constexpr double kSmallest = 0.00995033;  // log(1.01), as qcts history asks for

std::vector<double> noisy_nights(uint64_t seed) {
  std::vector<double> nights(kNights);
  for (size_t i = 0; i < kNights; ++i)
    nights[i] = kRecordedNoise[splitmix64(seed, i) % std::size(kRecordedNoise)];
  return nights;
}

void add_step(std::vector<double>& nights, size_t at, double step) {
  for (size_t i = at; i < nights.size(); ++i) nights[i] += step;
}

TEST(ChangePoints, RaiseFewFalseAlarmsOnRecordedNoise) {
  uint64_t alarms = 0;
  for (uint64_t seed = 0; seed < kHistories; ++seed)
    alarms += !change_points(noisy_nights(3000 + seed), kSmallest).empty();
  EXPECT_LE(alarms, kHistories * 5 / 100);
  RecordProperty("alarms", static_cast<int>(alarms));
}

// Without a smallest step nothing but the test's own level protects: one series in a hundred (six of 200 is
// beyond its 99th percentile).
TEST(ChangePoints, KeepTheirLevelWithoutASmallestStep) {
  uint64_t alarms = 0;
  for (uint64_t seed = 0; seed < kHistories; ++seed)
    alarms += !change_points(noisy_nights(9000 + seed), 0).empty();
  EXPECT_LE(alarms, 10u);
}

class ChangePointOfThreePercent : public testing::TestWithParam<double> {};

// The step is anywhere but in the first and the last five nights, and is found within three nights of the
// truth.
TEST_P(ChangePointOfThreePercent, IsFoundInNineOfTenHistories) {
  const double step = GetParam();
  uint64_t found = 0, covered = 0, other = 0;
  for (uint64_t seed = 0; seed < kHistories; ++seed) {
    const size_t at = 5 + splitmix64(77, seed) % (kNights - 9);
    std::vector<double> nights = noisy_nights(5000 + seed);
    add_step(nights, at, step);
    const std::vector<ChangePoint> changes = change_points(nights, kSmallest);
    bool here = false;
    for (const ChangePoint& change : changes) {
      const bool near = change.at + 3 >= at && change.at <= at + 3 && change.step.value * step > 0;
      here = here || near;
      other += !near;
      covered += near && change.step.low <= step && step <= change.step.high;
    }
    found += here;
  }
  EXPECT_GE(found, kHistories * 90 / 100);
  EXPECT_LE(other, kHistories * 5 / 100);
  EXPECT_GE(covered, found * 85 / 100) << "the interval of the step does not hold it";
  RecordProperty("found", static_cast<int>(found));
}
INSTANTIATE_TEST_SUITE_P(UpAndDown, ChangePointOfThreePercent,
                         testing::Values(std::log(1.03), -std::log(1.03)));

TEST(ChangePoints, TwoStepsAreTwoChanges) {
  std::vector<double> nights = noisy_nights(1);
  add_step(nights, 10, 0.05);
  add_step(nights, 20, -0.05);
  const std::vector<ChangePoint> changes = change_points(nights, kSmallest);
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_NEAR(static_cast<double>(changes[0].at), 10, 2);
  EXPECT_NEAR(static_cast<double>(changes[1].at), 20, 2);
  EXPECT_NEAR(changes[0].step.value, 0.05, 0.01);
  EXPECT_NEAR(changes[1].step.value, -0.05, 0.01);
}

TEST(ChangePoints, OneWildNightIsNone) {
  for (size_t at = 0; at < kNights; ++at) {
    std::vector<double> nights(kNights);
    for (size_t i = 0; i < kNights; ++i) nights[i] = 0.001 * noise(4, i);
    nights[at] += 10;
    EXPECT_TRUE(change_points(nights, kSmallest).empty()) << "night " << at;
  }
}

TEST(ChangePoints, AStepThatIsTooSmallIsNone) {
  std::vector<double> nights(kNights, 0.0);
  for (size_t i = 0; i < kNights; ++i) nights[i] = 1e-5 * noise(4, i);
  add_step(nights, 15, 0.005);
  EXPECT_TRUE(change_points(nights, 0.01).empty());
  EXPECT_EQ(change_points(nights, 0.001).size(), 1u);
}

TEST(ChangePoints, ShortAndConstantSeriesHaveNone) {
  for (size_t count = 0; count < 5; ++count) {
    std::vector<double> nights(count);
    std::iota(nights.begin(), nights.end(), 1.0);
    EXPECT_TRUE(change_points(nights, 0).empty()) << count;
  }
  EXPECT_TRUE(change_points(std::vector<double>(kNights, 2.5), 0).empty());
}

// {1, 2, 3} and {11, 12, 13, 14} have 12 differences, 8 to 13; the middle two are 10 and 11.
TEST(ChangePoints, TheShiftIsTheMedianOfAllDifferences) {
  const Interval shift = shift_between(std::vector<double>{1, 2, 3}, std::vector<double>{11, 12, 13, 14});
  EXPECT_EQ(shift.value, 10.5);
  EXPECT_LE(shift.low, 10.5);
  EXPECT_GE(shift.high, 10.5);
  EXPECT_TRUE(std::isinf(shift_between(std::vector<double>{1}, std::vector<double>{2}).high));
}

struct Quantile {
  double p, freedom, want;
};
class StudentQuantile : public testing::TestWithParam<Quantile> {};
TEST_P(StudentQuantile, IsThatOfTheTables) {
  EXPECT_NEAR(student_quantile(GetParam().p, GetParam().freedom), GetParam().want, 5e-4);
  EXPECT_NEAR(student_quantile(1 - GetParam().p, GetParam().freedom), -GetParam().want, 5e-4);
}
// Abramowitz and Stegun, table 26.10; freedom 1 is the Cauchy distribution.
INSTANTIATE_TEST_SUITE_P(Tables, StudentQuantile,
                         testing::Values(Quantile{0.975, 1, 12.706}, Quantile{0.975, 2, 4.303},
                                         Quantile{0.975, 5, 2.571}, Quantile{0.995, 10, 3.169},
                                         Quantile{0.995, 120, 2.617}, Quantile{0.9995, 4, 8.610},
                                         Quantile{0.5, 7, 0.0}, Quantile{0.975, 1e6, 1.95997}));

// The ratio of two series with known medians, each with its own interval: it must hold the truth as often as
// it says.
TEST(IndependentRatio, CoversWhatItPromises) {
  int covered = 0;
  constexpr int kPairs = 300;
  for (uint64_t i = 0; i < kPairs; ++i) {
    const auto around = [&](uint64_t seed, double middle) {
      std::vector<double> samples(60);
      for (size_t s = 0; s < samples.size(); ++s) samples[s] = middle * std::exp(0.05 * noise(seed, s));
      return bootstrap_median(samples, 1, 0.95, 300, seed);
    };
    const Interval ratio = ratio_of_independent(around(2 * i, 110), around(2 * i + 1, 100));
    covered += ratio.low <= 1.1 && 1.1 <= ratio.high;
  }
  EXPECT_GE(covered, kPairs * 90 / 100);
  EXPECT_LT(covered, kPairs) << "an interval that never misses is too wide";
}

TEST(IndependentRatio, WithoutAnIntervalThereIsNone) {
  const Interval known{2, 1, 4, 9}, unknown{2, 0, std::numeric_limits<double>::infinity(), 1};
  for (const Interval& ratio : {ratio_of_independent(known, unknown), ratio_of_independent(unknown, known)}) {
    EXPECT_EQ(ratio.value, 1);
    EXPECT_EQ(ratio.low, 0);
    EXPECT_TRUE(std::isinf(ratio.high));
  }
  EXPECT_NEAR(ratio_of_independent(known, known).low, std::exp(-std::sqrt(2) * std::log(2)), 1e-12);
  EXPECT_LT(ratio_of_independent(known, known, 1).low, ratio_of_independent(known, known).low);
}

}  // namespace
}  // namespace qcts
