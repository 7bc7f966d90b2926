// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/latency/latency_measures.h"

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

bool canary_changed(double drift) { return std::fabs(std::log(drift)) > std::log1p(kCanaryMargin); }

bool exceeds_roof(const Interval& share) { return share.low > 1 + kRoofMargin; }

bool is_slower(const Interval& ratio) { return ratio.high < 1 / (1 + kSlowdownMargin); }

std::string linear_subject(const Case& c) {
  const Synthetic& input = *c.synthetic();
  const std::string policy = c.activation() == kWeightOnly ? "" : " " + std::string(c.activation().name());
  return std::string(c.scheme->name()) + policy + " m=" + std::to_string(input.m) +
         " n=" + std::to_string(input.weight.n) + " k=" + std::to_string(input.weight.k);
}

std::string dense_against(DType dtype, const std::string& implementation) {
  return "dense " + std::string(dtype_name(dtype)) + " (" + implementation + ")";
}

void finish_latency(const JudgeContext& context, const std::string& notes, Decision targets, bool in_doubt,
                    Verdict& verdict) {
  const std::string claims = claims_text(verdict.speed);
  verdict.reason = claims + (claims.empty() || notes.empty() ? "" : "; ") + notes;
  verdict.is_peer = context.is_peer;
  verdict.status = context.gate_latency && !context.is_peer ? gated_status(verdict.speed, targets, in_doubt)
                                                            : Status::pass;
}

}  // namespace qcts
