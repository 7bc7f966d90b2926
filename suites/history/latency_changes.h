// SPDX-License-Identifier: BSD-3-Clause
// Decides which latency cases of two runs are slower or faster. Each is compared by its fastest call, over
// that of the roof timed in the same rounds, so that a machine that is slower as a whole makes no kernel
// slower; or by its time alone where that has the narrower interval. Either way both ratios have to point the
// same way. Medians would not do: on a quiet virtual machine, whose neighbours come and go for seconds at a
// time, those of equal runs differed by 11 % (standard deviation of 100 pairs of cases), and the fastest
// calls by 1 %.
//
// Two runs of the same kernels differ by more than the intervals within each run say: memory lies elsewhere.
// How much more is estimated from the runs themselves:
//   - with the history of a case, from the spread of its earlier nights (prediction interval of one further
//   night);
//   - otherwise from all cases of the pair: the spread, common to all, with which half of the cases lie
//   within the median
//     of their own distribution (a median instead of the sum in the estimate of Paule and Mandel 1982, so
//     that the few cases that did change do not widen it). Fewer than kCasesForSpread cases say too little;
//     then the roofs' own times, whose code is the same in both runs, tell how far apart the runs are. What
//     is usual on a quiet machine counts as two values more.
// Intervals are simultaneous (Bonferroni): in at most one comparison of twenty does any unchanged case seem
// slower or faster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "suites/history/recorded_run.h"

namespace qcts {

inline constexpr size_t kCasesForSpread = 5, kNightsForSpread = 5;

// A case's earlier nights, on the level of the last of them.
struct PaceLevel {
  bool over_roof = true;  // logarithms of the time over the roof's; otherwise of the time in us
  std::vector<double> logs;
};
using PaceHistory = std::map<std::string, PaceLevel>;  // by case

struct PaceChange {
  std::string id;
  Interval ratio;  // time now over time before, simultaneous interval
  double before_us = 0, after_us = 0;
  size_t nights = 0;  // of the history that the interval rests on; 0: on the two runs alone
  std::string doubt;  // why it is undecided
};

struct PaceComparison {
  std::vector<PaceChange> slower, faster;
  std::vector<PaceChange> undecided;  // would be slower or faster, but a measurement is not to be trusted
  size_t compared = 0;
  double spread = 0;      // standard deviation of log time between the runs, beyond their own intervals
  double resolution = 0;  // half of the unchanged cases would have to be slower by this fraction to be found
};

PaceComparison compare_paces(const RecordedRun& before, const RecordedRun& after, const PaceHistory& history);

// Returns the s >= 0 at which the median of deviation² / (error² + s²) is that of a chi-squared variable of
// one degree of freedom.
double spread_beyond(const std::vector<double>& deviations, const std::vector<double>& errors);

}  // namespace qcts
