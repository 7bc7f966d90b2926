// SPDX-License-Identifier: BSD-3-Clause
// Builds the measures of a latency verdict and reads them back.
#pragma once

#include <string_view>

#include "reports/verdict.h"
#include "suites/timing/stats.h"

namespace qcts {

inline constexpr double kLatencyConfidence = 0.95;
// An A/A interval that is further than this from 1 is an alarm.
// Without the margin, one case in twenty would raise an alarm.
// The margin is smaller than any difference that the targets care about.
inline constexpr double kAlarmMargin = 0.02;
// A ratio interval that is further than this below 1 is a slowdown.
// Without the margin, one comparison in forty would find a slowdown of 0 %.
// With the margin, 0 % was found in 0 of 400 runs and 3 % in 396 of 400 (EPYC Zen 4, busy neighbours).
inline constexpr double kSlowdownMargin = 0.01;
// The canary's speed may change by this much.
inline constexpr double kCanaryMargin = 0.05;

Measure measure_of(std::string name, std::string unit, const Interval& interval);
bool is_slower(const Interval& ratio);  // `ratio` is the peer's time over the candidate's
const Measure* find_measure(const Verdict& verdict, std::string_view name);
bool alarms(const Interval& against_itself);

}  // namespace qcts
