// SPDX-License-Identifier: BSD-3-Clause
// Decides whether the latency of a run can be trusted.
// Every latency case also times its kernel against itself (A/A).
// If there are more A/A alarms than chance allows, the machine was too noisy,
// and no latency verdict of the run counts.
#pragma once

#include <cstdint>
#include <vector>

#include "reports/verdict.h"

namespace qcts {

// The measure of a timed latency verdict: 1 if the kernel differed from itself, otherwise 0.
inline constexpr const char* kAlarmMeasure = "alarm";
// The significance level: on a quiet machine, at most this share of the cases raises an alarm.
inline constexpr double kAlarmLevel = 0.05;

struct LatencyTrust {
  uint64_t measured = 0;  // cases with an A/A series
  uint64_t alarms = 0;
  uint64_t allowed = 0;  // exceeded by fewer than one run in a hundred at kAlarmLevel
  bool suspended = false;
};

LatencyTrust latency_trust(const std::vector<Verdict>& verdicts);

// If there are too many alarms, says so in every latency verdict that was timed.
// If latency gates, it also turns pass and fail into inconclusive.
void suspend_latency(const LatencyTrust& trust, bool gate_latency, std::vector<Verdict>& verdicts);

// Returns the maximum number of alarms among `measured` cases that chance explains:
// P(more) < 1 % if each case raises an alarm with probability kAlarmLevel.
uint64_t allowed_alarms(uint64_t measured);

}  // namespace qcts
