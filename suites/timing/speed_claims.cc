// SPDX-License-Identifier: BSD-3-Clause
#include "suites/timing/speed_claims.h"

#include <algorithm>
#include <cmath>

namespace qcts {
namespace {

SpeedClaim decided(SpeedClaim claim, const Interval& ratio, bool in_doubt) {
  claim.ratio = ratio.value;
  claim.samples = ratio.samples;
  if (std::isfinite(ratio.low) && std::isfinite(ratio.high)) {
    claim.low = ratio.low;
    claim.high = ratio.high;
  }
  claim.required = true;
  claim.status = in_doubt ? Status::inconclusive : interval_status(claim);
  return claim;
}

}  // namespace

SpeedClaim faster_claim(std::string subject, std::string against, const Interval& ratio, bool in_doubt) {
  return decided({.claim = kFaster,
                  .subject = std::move(subject),
                  .against = std::move(against),
                  .at_least = 1 + kSlowdownMargin},
                 ratio, in_doubt);
}

SpeedClaim as_fast_claim(std::string subject, std::string against, const Interval& ratio, bool in_doubt) {
  return decided({.claim = kAsFast,
                  .subject = std::move(subject),
                  .against = std::move(against),
                  .at_least = 1 / (1 + kReloadMargin)},
                 ratio, in_doubt);
}

Status gated_status(std::span<const SpeedClaim> claims, Decision targets, bool in_doubt) {
  if (in_doubt) return Status::inconclusive;
  const auto any = [&](Status status) {
    return std::ranges::any_of(
        claims, [&](const SpeedClaim& claim) { return claim.required && claim.status == status; });
  };
  if (any(Status::fail) || targets == Decision::missed) return Status::fail;
  if (any(Status::inconclusive) || targets == Decision::undecided) return Status::inconclusive;
  return Status::pass;
}

std::string claims_text(std::span<const SpeedClaim> claims) {
  std::string text;
  for (const SpeedClaim& claim : claims)
    text += (text.empty() ? "" : "; ") + claim_text(claim) +
            (claim.required || claim.status == Status::pass ? "" : " (not required)");
  return text;
}

}  // namespace qcts
