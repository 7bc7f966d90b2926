// SPDX-License-Identifier: BSD-3-Clause
#include "reports/latency_trust.h"

#include <algorithm>
#include <cmath>

namespace qcts {
namespace {

constexpr double kRunLevel = 0.01;

const Measure* alarm_of(const Verdict& verdict) {
  const auto found = std::find_if(verdict.measures.begin(), verdict.measures.end(),
                                  [](const Measure& measure) { return measure.name == kAlarmMeasure; });
  return found == verdict.measures.end() ? nullptr : &*found;
}

}  // namespace

uint64_t allowed_alarms(uint64_t measured) {
  const double n = static_cast<double>(measured);
  double below = 0;  // P(alarms <= k)
  for (uint64_t k = 0; k < measured; ++k) {
    const double i = static_cast<double>(k);
    const double ways = std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1);
    below += std::exp(ways + i * std::log(kAlarmLevel) + (n - i) * std::log1p(-kAlarmLevel));
    if (1 - below < kRunLevel) return k;
  }
  return measured;
}

LatencyTrust latency_trust(const std::vector<Verdict>& verdicts) {
  LatencyTrust trust;
  for (const Verdict& verdict : verdicts)
    if (const Measure* alarm = alarm_of(verdict)) {
      ++trust.measured;
      trust.alarms += alarm->value != 0 ? 1 : 0;
    }
  trust.allowed = allowed_alarms(trust.measured);
  trust.suspended = trust.alarms > trust.allowed;
  return trust;
}

void suspend_latency(const LatencyTrust& trust, bool gate_latency, std::vector<Verdict>& verdicts) {
  if (!trust.suspended) return;
  const std::string why = "latency of this run is suspended: " + std::to_string(trust.alarms) + " of " +
                          std::to_string(trust.measured) + " kernels differed from themselves";
  for (Verdict& verdict : verdicts) {
    if (!alarm_of(verdict) || verdict.reason.starts_with(why)) continue;
    verdict.reason = why + (verdict.reason.empty() ? "" : "; ") + verdict.reason;
    for (SpeedClaim& claim : verdict.speed) claim.status = Status::inconclusive;
    if (gate_latency && !verdict.is_peer &&
        (verdict.status == Status::pass || verdict.status == Status::fail))
      verdict.status = Status::inconclusive;
  }
}

}  // namespace qcts
