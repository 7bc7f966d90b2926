// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/clock_check.h"

#include <algorithm>
#include <cstdio>

namespace qcts {
namespace {

constexpr double kNoTime = 1e9;  // the ratio of a time that cannot be

}  // namespace

bool ClockCheck::take(const GraphBatch& batch, bool is_last) {
  const double empty_us = empty_.road_us + static_cast<double>(batch.graphs) * empty_.graph_us;
  // The events may report more than the clock, but only by its inaccuracy. More would hide a lie in other
  // batches.
  const bool is_possible = batch.events_us > 0 && batch.events_us <= (1 + kMargin) * batch.wall_us;
  const double ratio = is_possible ? (batch.wall_us - empty_us) / batch.events_us : kNoTime;
  const bool is_confirmed = ratio <= 1 + kMargin;
  if (!is_confirmed && !is_last) {
    ++retried_;
    return false;
  }
  ++batches_;
  unconfirmed_ += !is_confirmed;
  largest_ratio_ = std::max(largest_ratio_, ratio);
  return is_confirmed;
}

std::string ClockCheck::doubt() const {
  if (unconfirmed_ == 0) return {};
  char text[160];
  std::snprintf(
      text, sizeof text,
      "%zu of %zu batches took longer by the judge's clock than by its events, up to %.2f times as long",
      unconfirmed_, batches_, largest_ratio_);
  return text;
}

}  // namespace qcts
