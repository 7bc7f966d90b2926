// SPDX-License-Identifier: BSD-3-Clause
// Statistics of a paired comparison: robust location, an interval that does not assume a distribution, and a
// verdict that can say "I don't know". Everything is seeded: the same samples give the same interval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace qcts {

// Middle element, or mean of the two middle ones. NaN for no elements.
double median(std::span<const double> values);

struct Interval {
  double value = 0;  // the statistic on the samples themselves
  double low = 0, high = 0;
  size_t samples = 0;
};

// Percentile bootstrap of the median (Efron 1979) over blocks of consecutive samples (moving-block bootstrap,
// Künsch 1989), which keeps the drift of neighbours together. block = 1 resamples single values. Fewer than 5
// blocks: low = -inf, high = +inf, because nothing can be said.
Interval bootstrap_median(std::span<const double> values, size_t block, double confidence, size_t resamples,
                          uint64_t seed);

// numerator over denominator from pairs timed one right after the other: exp of the interval of the median
// log-ratio. Both spans have the same length; all values > 0.
Interval ratio_interval(std::span<const double> numerator, std::span<const double> denominator, size_t block,
                        double confidence, uint64_t seed);

// The same from rounds that ran forward and backward in turn (A before B, then B before A). Two rounds give
// one sample, the mean of their log-ratios, in which what a place in the order costs cancels; a round without
// its partner, and a pair in which one side has a NaN (not timed in that round), is left out. Blocks of the
// cube root of their number.
Interval abba_interval(std::span<const double> numerator, std::span<const double> denominator,
                       double confidence, uint64_t seed);

// Ten samples a block where that leaves ten blocks, fewer below.
size_t block_length(size_t samples);

enum class Decision : uint8_t { met, missed, undecided };
std::string_view decision_name(Decision decision);
// Is the ratio at least `limit`? met: the whole interval is; missed: none of it is.
Decision decide_at_least(const Interval& ratio, double limit);

}  // namespace qcts
