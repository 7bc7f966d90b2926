// SPDX-License-Identifier: BSD-3-Clause
// What a latency verdict says in measures, read back: by the report's trust in itself and by the proposal of
// targets.
#pragma once

#include <string_view>

#include "reports/verdict.h"
#include "suites/timing/stats.h"

namespace qcts {

inline constexpr double kLatencyConfidence = 0.95;
// An A/A interval that lies further from 1 than this is an alarm. The interval alone would alarm in one of
// twenty cases; the margin is below what the targets care about.
inline constexpr double kAlarmMargin = 0.02;
// An interval against another kernel that lies further below 1 than this is a slowdown. The interval alone
// would find 0 % in one of forty; with the margin it was found in 0 of 400 runs, and 3 % in 396 of 400 (EPYC
// Zen 4, busy neighbours).
inline constexpr double kSlowdownMargin = 0.01;
// The canary may change its pace by so much.
inline constexpr double kCanaryMargin = 0.05;

Measure measure_of(std::string name, std::string unit, const Interval& interval);
bool is_slower(const Interval& ratio);  // a time over another, longer one
const Measure* find_measure(const Verdict& verdict, std::string_view name);
bool alarms(const Interval& against_itself);

}  // namespace qcts
