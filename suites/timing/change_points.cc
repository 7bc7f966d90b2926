// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/change_points.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "reference/numerics/noise.h"

namespace qcts {
namespace {

constexpr size_t kPermutations = 1999;
constexpr size_t kShortestLevel = 2;
constexpr size_t kFinestSearch = 128;  // values
constexpr uint64_t kSeed = 20260101;

std::vector<double> mid_ranks(std::span<const double> values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (size_t j = i; j < end; ++j) ranks[order[j]] = (static_cast<double>(i + end) + 1) / 2;
    i = end;
  }
  return ranks;
}

// The values [begin, end) against all others. A single step is [0, end).
struct Arc {
  size_t begin = 0, end = 0;
  double statistic = 0;
};

// Distance of the rank sum of `count` of `all` values from its expectation, in units of its standard
// deviation without ties. (Ties scale all arcs alike, and the permutations have the same ties.)
double standardized(double sum, size_t count, size_t all) {
  const double m = static_cast<double>(count), n = static_cast<double>(all);
  return std::fabs(sum - m * (n + 1) / 2) / std::sqrt(m * (n - m) * (n + 1) / 12);
}

Arc best_step(std::span<const double> ranks) {
  Arc best;
  double sum = 0;
  for (size_t k = 1; k + kShortestLevel <= ranks.size(); ++k) {
    sum += ranks[k - 1];
    if (k < kShortestLevel) continue;
    const double statistic = standardized(sum, k, ranks.size());
    if (statistic > best.statistic) best = {0, k, statistic};
  }
  return best;
}

// There and back again. Long series are searched in strides.
Arc best_excursion(std::span<const double> ranks) {
  const size_t n = ranks.size(), stride = 1 + n / kFinestSearch;
  std::vector<double> sums(n + 1, 0);
  std::partial_sum(ranks.begin(), ranks.end(), sums.begin() + 1);
  Arc best;
  for (size_t begin = kShortestLevel; begin + kShortestLevel < n; begin += stride)
    for (size_t end = begin + kShortestLevel; end + kShortestLevel <= n; end += stride) {
      const double statistic = standardized(sums[end] - sums[begin], end - begin, n);
      if (statistic > best.statistic) best = {begin, end, statistic};
    }
  return best;
}

// Returns the share of permutations that reach the statistic; the observed order counts as one of them.
// Returns 1 as soon as the share is sure to be above `level`.
double p_value(Arc (*best)(std::span<const double>), double statistic, double level,
               std::vector<double> ranks) {
  const double total = static_cast<double>(kPermutations + 1);
  size_t reached = 1;
  uint64_t draw = 0;
  for (size_t i = 0; i < kPermutations; ++i) {
    for (size_t last = ranks.size() - 1; last > 0; --last)
      std::swap(ranks[last], ranks[splitmix64(kSeed, draw++) % (last + 1)]);
    reached += best(ranks).statistic >= statistic - 1e-9;
    if (static_cast<double>(reached) > level * total) return 1;
  }
  return static_cast<double>(reached) / total;
}

void divide(std::span<const double> values, size_t begin, double level, std::vector<ChangePoint>& found) {
  if (values.size() < 2 * kShortestLevel) return;
  const std::vector<double> ranks = mid_ranks(values);
  for (auto* best : {&best_step, &best_excursion}) {
    const Arc arc = best(ranks);
    if (arc.end == 0) continue;
    const double p = p_value(best, arc.statistic, level / 2, ranks);  // half of the level for each question
    if (p > level / 2) continue;
    size_t from = 0;
    for (const size_t cut : {arc.begin, arc.end}) {
      if (cut == 0) continue;
      divide(values.subspan(from, cut - from), begin + from, level, found);
      found.push_back({begin + cut, p, {}});
      from = cut;
    }
    return divide(values.subspan(from), begin + from, level, found);
  }
}

}  // namespace

Interval shift_between(std::span<const double> before, std::span<const double> after) {
  std::vector<double> differences;
  for (const double b : after)
    for (const double a : before) differences.push_back(b - a);
  std::sort(differences.begin(), differences.end());
  const double m = static_cast<double>(before.size()), n = static_cast<double>(after.size());
  Interval shift{median(differences), -std::numeric_limits<double>::infinity(),
                 std::numeric_limits<double>::infinity(), before.size() + after.size()};
  const double outside = std::floor(m * n / 2 - kNormal95 * std::sqrt(m * n * (m + n + 1) / 12));
  if (outside >= 1) {
    shift.low = differences[static_cast<size_t>(outside) - 1];
    shift.high = differences[differences.size() - static_cast<size_t>(outside)];
  }
  return shift;
}

std::vector<ChangePoint> change_points(std::span<const double> values, double smallest, double level) {
  std::vector<ChangePoint> found;
  divide(values, 0, level, found);
  // Each step is between the levels that are next to it; a step that is too small joins its levels.
  for (;;) {
    size_t drop = found.size();
    for (size_t i = 0; i < found.size(); ++i) {
      const size_t begin = i == 0 ? 0 : found[i - 1].at;
      const size_t end = i + 1 == found.size() ? values.size() : found[i + 1].at;
      found[i].step = shift_between(values.subspan(begin, found[i].at - begin),
                                    values.subspan(found[i].at, end - found[i].at));
      if (std::fabs(found[i].step.value) < smallest &&
          (drop == found.size() || std::fabs(found[i].step.value) < std::fabs(found[drop].step.value)))
        drop = i;
    }
    if (drop == found.size()) return found;
    found.erase(found.begin() + static_cast<std::ptrdiff_t>(drop));
  }
}

}  // namespace qcts
