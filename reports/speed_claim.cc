// SPDX-License-Identifier: BSD-3-Clause
#include "reports/speed_claim.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "reports/verdict.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::string claim_ratio_text(const SpeedClaim& claim) {
  char text[96];
  if (!std::isfinite(claim.ratio)) return "not measured";
  if (claim.low && claim.high)
    std::snprintf(text, sizeof text, "%.2fx [%.2f, %.2f]", claim.ratio, *claim.low, *claim.high);
  else
    std::snprintf(text, sizeof text, "%.2fx [too few rounds]", claim.ratio);
  return text;
}

std::string faster_text(const SpeedClaim& claim) {
  const std::string ratio = claim_ratio_text(claim);
  switch (claim.status) {
    case Status::pass:
      return ratio + " faster than " + claim.against;
    case Status::fail:
      return "slower than " + claim.against + ", " + ratio;
    default:
      return "not shown to be faster than " + claim.against + ", " + ratio;
  }
}

std::string as_fast_text(const SpeedClaim& claim) {
  const std::string ratio = claim_ratio_text(claim);
  switch (claim.status) {
    case Status::pass:
      return "as fast as " + claim.against + ", " + ratio;
    case Status::fail:
      return "slower than " + claim.against + ", " + ratio;
    default:
      return "not shown to be as fast as " + claim.against + ", " + ratio;
  }
}

template <typename T>
T claim_field(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key))
    throw std::runtime_error(std::string("speed: field '") + key + "' is missing");
  try {
    return json.at(key).get<T>();
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(std::string("speed: field '") + key +
                             "' has the wrong type: " + json.at(key).dump());
  }
}

}  // namespace

Status interval_status(const SpeedClaim& claim) {
  if (!claim.low || !claim.high) return Status::inconclusive;
  if (*claim.low >= claim.at_least) return Status::pass;
  // As far below 1 as `at_least` is above it: in between, nobody is faster.
  const double slower = claim.claim == kFaster ? 1 / claim.at_least : claim.at_least;
  return *claim.high < slower ? Status::fail : Status::inconclusive;
}

std::string claim_text(const SpeedClaim& claim) {
  return claim.subject + ": " + (claim.claim == kFaster ? faster_text(claim) : as_fast_text(claim)) +
         (claim.status != interval_status(claim) ? ", in doubt" : "");
}

Json to_json(const SpeedClaim& claim) {
  Json json = {{"claim", claim.claim}, {"subject", claim.subject}, {"against", claim.against}};
  json["ratio"] = std::isfinite(claim.ratio) ? Json(claim.ratio) : Json(nullptr);
  if (claim.low && claim.high) {
    json["low"] = *claim.low;
    json["high"] = *claim.high;
  }
  json["samples"] = claim.samples;
  json["at_least"] = claim.at_least;
  json["required"] = claim.required;
  json["status"] = status_name(claim.status);
  json["text"] = claim_text(claim);
  return json;
}

SpeedClaim speed_claim_from_json(const Json& json) {
  SpeedClaim claim;
  claim.claim = claim_field<std::string>(json, "claim");
  claim.subject = claim_field<std::string>(json, "subject");
  claim.against = claim_field<std::string>(json, "against");
  const Json ratio = claim_field<Json>(json, "ratio");
  claim.ratio = ratio.is_null() ? std::nan("") : claim_field<double>(json, "ratio");
  if (json.contains("low")) claim.low = claim_field<double>(json, "low");
  if (json.contains("high")) claim.high = claim_field<double>(json, "high");
  claim.samples = claim_field<uint64_t>(json, "samples");
  claim.at_least = claim_field<double>(json, "at_least");
  claim.required = claim_field<bool>(json, "required");
  const std::string status = claim_field<std::string>(json, "status");
  const std::optional<Status> known = status_from_name(status);
  if (!known) throw std::runtime_error("speed: field 'status' is not a known status: '" + status + "'");
  claim.status = *known;
  return claim;
}

}  // namespace qcts
