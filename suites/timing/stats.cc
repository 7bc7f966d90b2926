// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/stats.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "reference/numerics/noise.h"

namespace qcts {
namespace {

constexpr size_t kMinBlocks = 5;

double quantile_of_sorted(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (position - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// Reorders `values`.
double median_in_place(std::vector<double>& values) {
  const size_t half = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + half, values.end());
  if (values.size() % 2 == 1) return values[half];
  return (values[half] + *std::max_element(values.begin(), values.begin() + half)) / 2;
}

bool has_logarithms(const Interval& interval) {
  return interval.low > 0 && interval.low <= interval.value && interval.value <= interval.high &&
         std::isfinite(interval.high);
}

// P(T <= x) for x >= 0, by Simpson's rule over the angle a with x = sqrt(freedom) tan a, in which the density
// is a power of the cosine (Abramowitz and Stegun 26.7.3).
double student_below(double x, double freedom) {
  constexpr int kSteps = 400;
  const double end = std::atan(x / std::sqrt(freedom)), width = end / kSteps;
  double sum = 0;
  for (int i = 0; i <= kSteps; ++i)
    sum += std::pow(std::cos(i * width), freedom - 1) * (i == 0 || i == kSteps ? 1 : i % 2 == 1 ? 4 : 2);
  const double constant =
      std::exp(std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2)) / std::sqrt(std::acos(-1.0));
  return 0.5 + constant * sum * width / 3;
}

}  // namespace

double median(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> copy(values.begin(), values.end());
  return median_in_place(copy);
}

Interval bootstrap_median(std::span<const double> values, size_t block, double confidence, size_t resamples,
                          uint64_t seed) {
  Interval interval;
  interval.value = median(values);
  interval.samples = values.size();
  interval.low = -std::numeric_limits<double>::infinity();
  interval.high = std::numeric_limits<double>::infinity();
  block = std::max<size_t>(block, 1);
  if (values.size() < kMinBlocks * block || resamples == 0) return interval;

  const size_t starts = values.size() - block + 1;
  std::vector<double> medians(resamples), sample(values.size());
  uint64_t draw = 0;
  for (double& m : medians) {
    for (size_t filled = 0; filled < sample.size();) {
      const size_t start = static_cast<size_t>(splitmix64(seed, draw++) % starts);
      for (size_t i = 0; i < block && filled < sample.size(); ++i) sample[filled++] = values[start + i];
    }
    m = median_in_place(sample);
  }
  std::sort(medians.begin(), medians.end());
  interval.low = quantile_of_sorted(medians, (1 - confidence) / 2);
  interval.high = quantile_of_sorted(medians, (1 + confidence) / 2);
  return interval;
}

size_t block_length(size_t samples) { return std::clamp<size_t>(samples / 10, 1, 10); }

Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator, size_t block,
                        double confidence, uint64_t seed) {
  if (numerator.size() != denominator.size()) throw std::invalid_argument("ratio_interval: unpaired samples");
  std::vector<double> logs(numerator.size());
  for (size_t i = 0; i < logs.size(); ++i) logs[i] = std::log(numerator[i] / denominator[i]);
  Interval interval = bootstrap_median(logs, block, confidence, 1000, seed);
  interval.value = std::exp(interval.value);
  interval.low = std::exp(interval.low);
  interval.high = std::exp(interval.high);
  return interval;
}

Interval abba_interval(std::span<const double> numerator, std::span<const double> denominator,
                       double confidence, uint64_t seed) {
  if (numerator.size() != denominator.size()) throw std::invalid_argument("abba_interval: unpaired samples");
  std::vector<double> logs;
  for (size_t i = 0; i + 1 < numerator.size(); i += 2) {
    const double log =
        (std::log(numerator[i] / denominator[i]) + std::log(numerator[i + 1] / denominator[i + 1])) / 2;
    if (!std::isnan(log)) logs.push_back(log);
  }
  // Folding pairs already removes the slow drift. With the cube root, at which the error of a block bootstrap
  // falls fastest (Hall, Horowitz, Jing 1995), enough blocks are left for the nominal coverage.
  const double root = std::cbrt(static_cast<double>(logs.size()));
  const size_t block = logs.size() < 10 ? 1 : static_cast<size_t>(root + 1e-9);
  Interval interval = bootstrap_median(logs, block, confidence, 1000, seed);
  interval.value = std::exp(interval.value);
  interval.low = std::exp(interval.low);
  interval.high = std::exp(interval.high);
  return interval;
}

Interval ratio_of_independent(const Interval& numerator, const Interval& denominator, double spread) {
  Interval ratio;
  ratio.value = numerator.value / denominator.value;
  ratio.samples = std::min(numerator.samples, denominator.samples);
  ratio.low = 0;
  ratio.high = std::numeric_limits<double>::infinity();
  if (!has_logarithms(numerator) || !has_logarithms(denominator)) return ratio;
  const double down = std::hypot(std::log(numerator.value / numerator.low),
                                 std::log(denominator.high / denominator.value), spread);
  const double up = std::hypot(std::log(numerator.high / numerator.value),
                               std::log(denominator.value / denominator.low), spread);
  ratio.low = ratio.value * std::exp(-down);
  ratio.high = ratio.value * std::exp(up);
  return ratio;
}

Interval fastest(std::span<const double> us) {
  constexpr size_t kAbove = 3, kMinSamples = 8;
  std::vector<double> sorted;
  std::ranges::copy_if(us, std::back_inserter(sorted), [](double v) { return !std::isnan(v); });
  std::ranges::sort(sorted);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Interval interval{std::numeric_limits<double>::quiet_NaN(), -kInfinity, kInfinity, sorted.size()};
  if (!sorted.empty()) interval.value = sorted.front();
  if (sorted.size() < kMinSamples) return interval;
  interval.high = interval.value;
  interval.low = interval.value - (std::pow(20, 1.0 / kAbove) - 1) * (sorted[kAbove] - interval.value);
  return interval;
}

double student_quantile(double p, double freedom) {
  if (p < 0.5) return -student_quantile(1 - p, freedom);
  double low = 0, high = 1;
  while (student_below(high, freedom) < p && high < 1e12) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_below(middle, freedom) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

std::string_view decision_name(Decision decision) {
  switch (decision) {
    case Decision::met:
      return "met";
    case Decision::missed:
      return "missed";
    case Decision::undecided:
      return "undecided";
  }
  return "";
}

Decision decide_at_least(const Interval& ratio, double limit) {
  if (ratio.low >= limit) return Decision::met;
  if (ratio.high < limit) return Decision::missed;
  return Decision::undecided;
}

}  // namespace qcts
