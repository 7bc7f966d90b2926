// SPDX-License-Identifier: BSD-3-Clause
#include "suites/history/latency_changes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "suites/judge/latency_measures.h"

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

// A case that both runs timed.
struct PacePair {
  const CaseState *before, *after;
  bool over_roof = false;  // what is compared: the time over the roof's, or the time alone
  Interval ratio;          // from the two runs' own intervals, 95 %
  Interval other;          // of what is not compared; its value is 0 if there is none
  double quartile = 0;     // ratio of the lower quartiles; 0 if a record lacks one
  double error = 0;        // standard error of log(ratio.value)
  double roof = 0;         // log of the roof's time now over before; 0 if there is none

  Interval with_spread(double spread) const {
    const Pace &a = *before->pace, &b = *after->pace;
    return over_roof ? ratio_of_independent(b.of_roof, a.of_roof, spread)
                     : ratio_of_independent(b.us, a.us, spread);
  }
};

bool is_known(const Interval& interval) { return interval.low > 0 && std::isfinite(interval.high); }

double width(const Interval& ratio) { return std::log(ratio.high / ratio.low); }

PacePair pair_of(const CaseState& before, const CaseState& after) {
  const Pace &a = *before.pace, &b = *after.pace;
  PacePair pair{&before, &after, false, ratio_of_independent(b.us, a.us), {}};
  if (a.has_roof() && b.has_roof()) {
    pair.other = ratio_of_independent(b.of_roof, a.of_roof);
    pair.roof = std::log(b.us.value / a.us.value) - std::log(b.of_roof.value / a.of_roof.value);
    pair.over_roof = is_known(pair.other) && !(is_known(pair.ratio) && width(pair.ratio) < width(pair.other));
    if (pair.over_roof) std::swap(pair.ratio, pair.other);
  }
  if (a.quartile_us > 0 && b.quartile_us > 0) pair.quartile = b.quartile_us / a.quartile_us;
  if (is_known(pair.ratio)) pair.error = std::max(width(pair.ratio) / (2 * kNormal95), kLeastError);
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
    if (const PacePair pair = pair_of(*old, now); is_known(pair.ratio)) pairs.push_back(pair);
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
    roofs += pair.roof * pair.roof;
    logs.push_back(std::log(pair.ratio.value));
    errors.push_back(pair.error);
  }
  const double count = static_cast<double>(pairs.size());
  if (pairs.size() < kCasesForSpread) return {std::sqrt(roofs / std::max(1.0, count)), std::max(1.0, count)};
  const double middle = median(logs);
  for (double& log : logs) log -= middle;
  return {spread_beyond(logs, errors), std::min(kFreedomOfSpread, count - 1)};
}

// Multiplies the arms of log(ratio).
Interval widened(const Interval& ratio, double factor) {
  return {ratio.value, ratio.value * std::pow(ratio.low / ratio.value, factor),
          ratio.value * std::pow(ratio.high / ratio.value, factor), ratio.samples};
}

Interval from_two_runs(const PacePair& pair, const Spread& spread, double level) {
  const Interval both = pair.with_spread(kNormal95 * spread.expected);
  // Welch and Satterthwaite: the degrees of freedom of a sum of two estimated variances.
  const double within = pair.error * pair.error, between = spread.expected * spread.expected;
  const double rounds = static_cast<double>(std::max<size_t>(pair.ratio.samples, 2)) - 1;
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
  const double deviation = std::max(std::sqrt(squares / (count - 1)), pair.error);
  const double arm = student_quantile(level, count - 1) * deviation * std::sqrt(1 + 1 / count);
  const Pace& now = *pair.after->pace;
  const double change = std::log(past.over_roof ? now.of_roof.value : now.us.value) - mean;
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
  const std::vector<PacePair> pairs = pairs_of(before, after);
  comparison.compared = pairs.size();
  if (pairs.empty()) return comparison;
  const Spread spread = spread_of(pairs);
  comparison.spread = spread.observed;
  const double level = 1 - (1 - kLatencyConfidence) / (2 * static_cast<double>(pairs.size()));
  std::vector<double> arms;
  for (const PacePair& pair : pairs) {
    const auto known = history.find(pair.after->id);
    const bool uses_history = known != history.end() && known->second.logs.size() >= kNightsForSpread &&
                              (pair.after->pace->has_roof() || !known->second.over_roof);
    PaceChange change{pair.after->id, {}, pair.before->pace->us.value, pair.after->pace->us.value, 0, ""};
    change.nights = uses_history ? known->second.logs.size() : 0;
    change.ratio =
        uses_history ? from_history(pair, known->second, level) : from_two_runs(pair, spread, level);
    arms.push_back(change.ratio.value / change.ratio.low * (1 + kSlowdownMargin) - 1);
    const auto others_beyond = [&pair](auto is_beyond) {
      return (pair.other.value == 0 || is_beyond(pair.other.value)) &&
             (pair.quartile == 0 || is_beyond(pair.quartile));
    };
    const auto is_slower = [](double ratio) { return ratio > 1 + kSlowdownMargin; };
    const auto is_faster = [](double ratio) { return ratio < 1 / (1 + kSlowdownMargin); };
    const bool slower = is_slower(change.ratio.low) && others_beyond(is_slower);
    const bool faster = is_faster(change.ratio.high) && others_beyond(is_faster);
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
