// SPDX-License-Identifier: BSD-3-Clause
// Decides which latency cases of two runs are slower or faster.
// A case has three times: its fastest call, that call over the fastest call of the roof timed in the same
// rounds, and the lower quartile of the calls that the record holds.
// All ratios of a case must point the same way.
// A machine that is slower as a whole therefore makes no kernel slower, and neither does a rare fast call.
// One of the three is compared in detail.
// The lower quartile is, if the quartiles of all cases differ less between the two runs than the fastest
// calls. Otherwise the fastest call over the roof's is, or the fastest call alone if its interval is
// narrower. In 20 pairs of runs on a quiet machine, whose clock is raised now and then, quartiles of equal
// kernels had a spread of at most 0.9 %, and fastest calls of up to 2.8 %. Medians would not do, because
// neighbours on a virtual machine come and go for seconds at a time.
//
// Two runs of the same kernels differ by more than the intervals within each run suggest, because memory is
// elsewhere. The additional spread is estimated from the runs themselves:
//   - With a history of the case, the spread follows from its earlier nights.
//     The interval is the prediction interval of one further night.
//   - Otherwise the spread follows from all cases of the two runs.
//     With this common spread, half of the cases are within the median of their own distribution.
//     The estimate of Paule and Mandel 1982 uses a sum instead of this median.
//     The median keeps the few cases that did change from widening the spread.
//     Fewer than kCasesForSpread cases are not enough.
//     The times of the roofs, whose code is the same in both runs, then show how far apart the runs are.
//     The usual spread of a quiet machine counts as two more values.
// Intervals are simultaneous (Bonferroni).
// At most one of twenty comparisons finds an unchanged case slower or faster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "suites/comparison/recorded_run.h"

namespace qcts {

inline constexpr size_t kCasesForSpread = 5, kNightsForSpread = 5;

// A case's earlier nights, on the level of the last of them.
struct PaceLevel {
  bool over_roof = true;  // true: logarithms of the time over the roof's; false: of the time in us
  std::vector<double> logs;
};
using PaceHistory = std::map<std::string, PaceLevel>;  // maps a case to its level

struct PaceChange {
  std::string id;
  Interval ratio;                      // time now over time before, simultaneous interval
  double before_us = 0, after_us = 0;  // lower quartiles if they were compared, otherwise fastest calls
  size_t nights = 0;  // nights of the history that give the interval; 0: only the two runs give it
  std::string doubt;  // the reason why it is undecided
};

struct PaceComparison {
  std::vector<PaceChange> slower, faster;
  // Cases that would be slower or faster, but have a measurement that is not trusted.
  std::vector<PaceChange> undecided;
  size_t compared = 0;
  // The standard deviation of log time between the runs, in addition to their own intervals.
  double spread = 0;
  double resolution = 0;  // fraction by which half of the unchanged cases would have to be slower to be found
};

PaceComparison compare_paces(const RecordedRun& before, const RecordedRun& after, const PaceHistory& history);

// Returns the s >= 0 at which the median of deviation² / (error² + s²) has a given value.
// The value is the median of a chi-squared variable with one degree of freedom.
double spread_beyond(const std::vector<double>& deviations, const std::vector<double>& errors);

}  // namespace qcts
