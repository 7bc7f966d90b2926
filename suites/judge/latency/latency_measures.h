// SPDX-License-Identifier: BSD-3-Clause
// Builds the measures of a latency verdict and reads them back.
#pragma once

#include <string>
#include <string_view>

#include "reports/verdict.h"
#include "suites/cases/case.h"
#include "suites/judge/judge.h"
#include "suites/timing/speed_claims.h"
#include "suites/timing/stats.h"

namespace qcts {

inline constexpr double kLatencyConfidence = 0.95;
// An A/A interval that is further than this from 1 is an alarm.
// Without the margin, one case in twenty would raise an alarm.
// The margin is smaller than any difference that the targets care about.
inline constexpr double kAlarmMargin = 0.02;

// A kernel may exceed its roof by this much. Beyond it, a call took less time than the machine's fastest way
// of doing a part of its work, so one of the two times is wrong.
inline constexpr double kRoofMargin = 0.05;

// The canary's speed may change by this much.
inline constexpr double kCanaryMargin = 0.05;

Measure measure_of(std::string name, std::string unit, const Interval& interval);
bool exceeds_roof(const Interval& share);
bool is_slower(const Interval& ratio);  // `ratio` is the peer's time over the candidate's
const Measure* find_measure(const Verdict& verdict, std::string_view name);
bool alarms(const Interval& against_itself);
bool canary_changed(double drift);  // drift: the canary's time afterwards over its time before

// Returns the subject of a speed claim of a linear: "int8_row dyn_row_sym m=1 n=4096 k=4096".
std::string linear_subject(const Case& c);
// Returns "dense bfloat16 (aten_aten)".
std::string dense_against(DType dtype, const std::string& implementation);
// Sets the status and the reason of a latency verdict from its speed claims, the notes and the targets. If
// latency does not gate, and for a peer, the status is pass.
void finish_latency(const JudgeContext& context, const std::string& notes, Decision targets, bool in_doubt,
                    Verdict& verdict);

}  // namespace qcts
