// SPDX-License-Identifier: BSD-3-Clause
// The A/A row of a run: every latency case times its kernel against itself, and more alarms than chance
// allows mean that the machine was no place to measure. Then no latency verdict of the run stands.
#pragma once

#include <cstdint>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

// The measure that a latency verdict has once it is timed: 1 where it differed from itself, else 0.
inline constexpr const char* kAlarmMeasure = "alarm";
// The declared level: of the cases on a machine that holds still, at most this part alarms.
inline constexpr double kAlarmLevel = 0.05;

struct LatencyTrust {
  uint64_t measured = 0;  // cases with an A/A lane
  uint64_t alarms = 0;
  uint64_t allowed = 0;  // at kAlarmLevel a hundred runs have more in fewer than one
  bool suspended = false;
};

LatencyTrust latency_trust(const std::vector<Verdict>& verdicts);

// Where the run's alarms are too many: says so in every latency verdict that was timed, and, where latency
// gates, makes inconclusive what was pass or fail.
void suspend_latency(const LatencyTrust& trust, bool gate_latency, std::vector<Verdict>& verdicts);

// The most alarms among `measured` cases that chance explains: P(more) < 1 % when each alarms with
// kAlarmLevel.
uint64_t allowed_alarms(uint64_t measured);

}  // namespace qcts
