// SPDX-License-Identifier: BSD-3-Clause
#include "suites/comparison/latency_changes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "suites/judge/latency/latency_measures.h"

namespace qcts {
namespace {

constexpr double kLeastError = 1e-4;  // of a log time: clocks have ticks
constexpr double kMedianOfChiSquared = 0.454936423119572;
// The median of few cases says little, and the noise between runs has heavy tails however many cases there
// are.
constexpr double kFreedomOfSpread = 3;
// Between runs of five unchanged kernels, 20 pairs on a quiet machine, the fastest calls differed by this
// standard deviation. It counts as two values more, so that cases which happen to agree, or never vary, do
// not make the others seem changed.
constexpr double kUsualSpread = 0.01, kFreedomOfUsual = 2;

// The times by which a case can be compared.
using Statistic = Interval Pace::*;
constexpr Statistic kStatistics[] = {&Pace::us, &Pace::of_roof, &Pace::quartile_us};

bool is_known(const Interval& interval) { return interval.low > 0 && std::isfinite(interval.high); }

double width(const Interval& ratio) { return std::log(ratio.high / ratio.low); }

// A case that both runs timed.
struct PacePair {
  const CaseState *before, *after;
  Statistic statistic = &Pace::us;  // what is compared

  const Interval& time_before(Statistic which) const { return (*before->pace).*which; }
  const Interval& time_now(Statistic which) const { return (*after->pace).*which; }
  Interval ratio_of(Statistic which, double spread = 0) const {
    return ratio_of_independent(time_now(which), time_before(which), spread);
  }
  // From the two runs' own intervals, 95 %.
  Interval ratio() const { return ratio_of(statistic); }
  // Standard error of log(ratio().value).
  double error() const { return std::max(width(ratio()) / (2 * kNormal95), kLeastError); }
  bool has(Statistic which) const { return time_before(which).value > 0 && time_now(which).value > 0; }
  // log of the roof's time now over before; 0 if there is none
  double roof() const {
    if (!has(&Pace::of_roof)) return 0;
    return std::log(ratio_of(&Pace::us).value) - std::log(ratio_of(&Pace::of_roof).value);
  }
  // Returns true if the ratios of all other statistics satisfy `is_beyond`.
  bool others_agree(const std::function<bool(double)>& is_beyond) const {
    return std::ranges::all_of(kStatistics, [&](Statistic which) {
      return which == statistic || !has(which) || is_beyond(ratio_of(which).value);
    });
  }
};

// Compares the fastest call over the roof's, unless the fastest call alone is known better.
PacePair pair_of(const CaseState& before, const CaseState& after) {
  PacePair pair{&before, &after};
  if (!pair.has(&Pace::of_roof)) return pair;
  const Interval alone = pair.ratio_of(&Pace::us), over_roof = pair.ratio_of(&Pace::of_roof);
  if (is_known(over_roof) && !(is_known(alone) && width(alone) < width(over_roof)))
    pair.statistic = &Pace::of_roof;
  return pair;
}

std::vector<PacePair> pairs_of(const RecordedRun& before, const RecordedRun& after) {
  std::vector<PacePair> pairs;
  auto old = before.cases.begin();
  for (const CaseState& now : after.cases) {
    if (!now.pace) continue;
    old = std::lower_bound(old, before.cases.end(), now.id,
                           [](const CaseState& c, const std::string& id) { return c.id < id; });
    if (old == before.cases.end() || old->id != now.id || !old->pace) continue;
    if (const PacePair pair = pair_of(*old, now); is_known(pair.ratio())) pairs.push_back(pair);
  }
  return pairs;
}

// The spread between two runs, what is expected of it, and the number of independent values that this rests
// on.
struct Spread {
  double observed = 0, expected = kUsualSpread, freedom = kFreedomOfUsual;
  Spread(double deviation, double values)
      : observed(deviation),
        expected(std::sqrt((kFreedomOfUsual * kUsualSpread * kUsualSpread + values * deviation * deviation) /
                           (kFreedomOfUsual + values))),
        freedom(kFreedomOfUsual + values) {}
};

Spread spread_of(const std::vector<PacePair>& pairs) {
  std::vector<double> logs, errors;
  double roofs = 0;
  for (const PacePair& pair : pairs) {
    roofs += pair.roof() * pair.roof();
    logs.push_back(std::log(pair.ratio().value));
    errors.push_back(pair.error());
  }
  const double count = static_cast<double>(pairs.size());
  if (pairs.size() < kCasesForSpread) return {std::sqrt(roofs / std::max(1.0, count)), std::max(1.0, count)};
  const double middle = median(logs);
  for (double& log : logs) log -= middle;
  return {spread_beyond(logs, errors), std::min(kFreedomOfSpread, count - 1)};
}

// Compares all cases by the lower quartiles of their calls if these differ less between the two runs. A clock
// that is raised for a moment changes only the fastest call.
Spread choose_statistic(std::vector<PacePair>& pairs) {
  const Spread fastest = spread_of(pairs);
  if (pairs.size() < kCasesForSpread) return fastest;
  std::vector<PacePair> by_quartile = pairs;
  for (PacePair& pair : by_quartile) {
    pair.statistic = &Pace::quartile_us;
    if (!pair.has(&Pace::quartile_us) || !is_known(pair.ratio())) return fastest;
  }
  const Spread quartiles = spread_of(by_quartile);
  if (quartiles.observed >= fastest.observed) return fastest;
  pairs = std::move(by_quartile);
  return quartiles;
}

// Multiplies the arms of log(ratio).
Interval widened(const Interval& ratio, double factor) {
  return {ratio.value, ratio.value * std::pow(ratio.low / ratio.value, factor),
          ratio.value * std::pow(ratio.high / ratio.value, factor), ratio.samples};
}

Interval from_two_runs(const PacePair& pair, const Spread& spread, double level) {
  const Interval both = pair.ratio_of(pair.statistic, kNormal95 * spread.expected);
  // Welch and Satterthwaite: the degrees of freedom of a sum of two estimated variances.
  const double within = pair.error() * pair.error(), between = spread.expected * spread.expected;
  const double rounds = static_cast<double>(std::max<size_t>(both.samples, 2)) - 1;
  const double freedom = (within + between) * (within + between) /
                         std::max(within * within / rounds + between * between / spread.freedom, 1e-300);
  return widened(both, student_quantile(level, std::max(1.0, freedom)) / kNormal95);
}

// The prediction interval of one further night, over the mean of the earlier ones.
Interval from_history(const PacePair& pair, const PaceLevel& past, double level) {
  const std::vector<double>& nights = past.logs;
  const double count = static_cast<double>(nights.size());
  const double mean = std::accumulate(nights.begin(), nights.end(), 0.0) / count;
  double squares = 0;
  for (const double night : nights) squares += (night - mean) * (night - mean);
  const double deviation = std::max(std::sqrt(squares / (count - 1)), pair.error());
  const double arm = student_quantile(level, count - 1) * deviation * std::sqrt(1 + 1 / count);
  const double change = std::log(pair.time_now(pair.statistic).value) - mean;
  return {std::exp(change), std::exp(change - arm), std::exp(change + arm), nights.size()};
}

std::string doubt_of(const RecordedRun& before, const RecordedRun& after, const PacePair& pair) {
  for (const RecordedRun* run : {&before, &after})
    if (run->latency_trust.suspended)
      return run->name + ": too many kernels differed from themselves for its latency to count";
  if (!pair.before->pace->trusted) return before.name + ": the measurement is not to be trusted";
  if (!pair.after->pace->trusted) return after.name + ": the measurement is not to be trusted";
  return {};
}

}  // namespace

double spread_beyond(const std::vector<double>& deviations, const std::vector<double>& errors) {
  const auto median_at = [&](double spread) {
    std::vector<double> ratios;
    for (size_t i = 0; i < deviations.size(); ++i)
      ratios.push_back(deviations[i] * deviations[i] / (errors[i] * errors[i] + spread * spread));
    return median(ratios);
  };
  if (deviations.empty() || !(median_at(0) > kMedianOfChiSquared)) return 0;
  double low = 0, high = 1e-6;
  while (median_at(high) > kMedianOfChiSquared) high *= 2;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (median_at(middle) > kMedianOfChiSquared ? low : high) = middle;
  }
  return high;
}

PaceComparison compare_paces(const RecordedRun& before, const RecordedRun& after,
                             const PaceHistory& history) {
  PaceComparison comparison;
  std::vector<PacePair> pairs = pairs_of(before, after);
  comparison.compared = pairs.size();
  if (pairs.empty()) return comparison;
  const Spread spread = choose_statistic(pairs);
  comparison.spread = spread.observed;
  const double level = 1 - (1 - kLatencyConfidence) / (2 * static_cast<double>(pairs.size()));
  std::vector<double> arms;
  for (const PacePair& pair : pairs) {
    const auto known = history.find(pair.after->id);
    const bool uses_history = known != history.end() && known->second.logs.size() >= kNightsForSpread &&
                              (pair.after->pace->has_roof() || !known->second.over_roof);
    PacePair compared = pair;
    if (uses_history) compared.statistic = known->second.over_roof ? &Pace::of_roof : &Pace::us;
    const Statistic shown = compared.statistic == &Pace::of_roof ? &Pace::us : compared.statistic;
    PaceChange change;
    change.id = compared.after->id;
    change.before_us = compared.time_before(shown).value;
    change.after_us = compared.time_now(shown).value;
    change.nights = uses_history ? known->second.logs.size() : 0;
    change.ratio =
        uses_history ? from_history(compared, known->second, level) : from_two_runs(compared, spread, level);
    arms.push_back(change.ratio.value / change.ratio.low * (1 + kSlowdownMargin) - 1);
    const auto is_slower = [](double ratio) { return ratio > 1 + kSlowdownMargin; };
    const auto is_faster = [](double ratio) { return ratio < 1 / (1 + kSlowdownMargin); };
    const bool slower = is_slower(change.ratio.low) && compared.others_agree(is_slower);
    const bool faster = is_faster(change.ratio.high) && compared.others_agree(is_faster);
    if (!slower && !faster) continue;
    change.doubt = doubt_of(before, after, pair);
    (!change.doubt.empty() ? comparison.undecided
     : slower              ? comparison.slower
                           : comparison.faster)
        .push_back(std::move(change));
  }
  comparison.resolution = median(arms);
  const auto by_size = [](const PaceChange& a, const PaceChange& b) {
    return std::fabs(std::log(a.ratio.value)) > std::fabs(std::log(b.ratio.value));
  };
  for (auto* list : {&comparison.slower, &comparison.faster, &comparison.undecided})
    std::stable_sort(list->begin(), list->end(), by_size);
  return comparison;
}

}  // namespace qcts
