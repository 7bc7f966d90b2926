// SPDX-License-Identifier: BSD-3-Clause
// Statistics for paired comparisons: robust location, and intervals that assume no distribution.
// A decision can be "undecided". Everything is seeded: the same samples give the same interval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace qcts {

// Returns the middle element, or the mean of the two middle ones. Returns NaN if there are no values.
double median(std::span<const double> values);

// 95 % of a normal distribution is within this number of standard deviations of its mean.
inline constexpr double kNormal95 = 1.959963984540054;

struct Interval {
  double value = 0;  // the statistic of the measured samples, without resampling
  double low = 0, high = 0;
  size_t samples = 0;
};

// Returns the percentile bootstrap of the median (Efron 1979) over blocks of consecutive samples.
// This moving-block bootstrap (Künsch 1989) preserves drift. block = 1 resamples single values.
// With fewer than 5 blocks, the interval is unknown: low = -inf, high = +inf.
Interval bootstrap_median(std::span<const double> values, size_t block, double confidence, size_t resamples,
                          uint64_t seed);

// Returns the interval of numerator / denominator from pairs that were timed one right after the other.
// The result is exp of the interval of the median log-ratio.
// Both spans must have the same length, and all values must be > 0.
Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator, size_t block,
                        double confidence, uint64_t seed);

// Returns the interval of numerator / denominator from rounds that alternate forward and backward.
// Forward is A before B, backward is B before A.
// Two rounds give one sample, the mean of their log-ratios, which cancels the effect of order.
// Leaves out unpaired rounds and pairs with a NaN (not timed in that round).
// The block length is the cube root of the number of samples.
Interval abba_interval(std::span<const double> numerator, std::span<const double> denominator,
                       double confidence, uint64_t seed);

// Returns the interval of numerator / denominator from two independent intervals of positive values.
// Such intervals come from two runs, which share no rounds.
// Combines the arms of the logarithms as sqrt(arm² + arm²), so that skew is kept.
// The method is called MOVER (Zou and Donner 2008).
// `spread` is the half-width of a further, symmetric source of error of the log ratio.
// This half-width is added to both arms.
// If an interval is missing (not finite or not positive), low = 0 and high = +inf.
Interval ratio_of_independent(const Interval& numerator, const Interval& denominator, double spread = 0);

// Returns the smallest of `us`, with a 95 % interval for the shortest possible time. Other work on the
// machine only adds to a time, so the fastest calls of two runs differ far less than their medians (Chen and
// Revels 2016). The interval ends at the smallest value and begins (20^(1/k) - 1) (x_k - x_0) below it, with
// k = 3 values above the smallest (Weissman 1981; with k = 1 Robson and Whitlock 1964). This assumes that
// short times are about equally frequent. NaN are left out. With fewer than 8 values, low = -inf and high =
// +inf.
Interval fastest(std::span<const double> us);

// Returns x with P(T <= x) = p of Student's distribution. 0 < p < 1; freedom >= 1.
double student_quantile(double p, double freedom);

// Returns ten samples per block if that leaves at least ten blocks, or fewer otherwise.
size_t block_length(size_t samples);

enum class Decision : uint8_t { met, missed, undecided };
std::string_view decision_name(Decision decision);
// Decides whether the ratio is at least `limit`: met if the whole interval is, missed if none of it is.
Decision decide_at_least(const Interval& ratio, double limit);

}  // namespace qcts
