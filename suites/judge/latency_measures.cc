// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency_measures.h"

#include <algorithm>
#include <cmath>

namespace qcts {

Measure measure_of(std::string name, std::string unit, const Interval& interval) {
  Measure measure{std::move(name), std::move(unit), interval.value, {}, {}, interval.samples};
  if (std::isfinite(interval.low) && std::isfinite(interval.high)) {
    measure.low = interval.low;
    measure.high = interval.high;
  }
  return measure;
}

const Measure* find_measure(const Verdict& verdict, std::string_view name) {
  const auto found = std::find_if(verdict.measures.begin(), verdict.measures.end(),
                                  [&](const Measure& measure) { return measure.name == name; });
  return found == verdict.measures.end() ? nullptr : &*found;
}

bool alarms(const Interval& against_itself) {
  return against_itself.low > 1 + kAlarmMargin || against_itself.high < 1 / (1 + kAlarmMargin);
}

bool is_slower(const Interval& ratio) { return ratio.high < 1 / (1 + kSlowdownMargin); }

}  // namespace qcts
