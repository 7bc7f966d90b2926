// SPDX-License-Identifier: BSD-3-Clause
// A statement about speed that a ratio of times decides. One says that a layer is faster than the dense
// layer, another that it is as fast after loading as before saving.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace qcts {

enum class Status : uint8_t;

inline constexpr const char* kFaster = "faster";
inline constexpr const char* kAsFast = "as_fast";

struct SpeedClaim {
  std::string claim;    // kFaster or kAsFast
  std::string subject;  // "int4_tinygemm_g128 m=1 n=4096 k=4096"
  std::string against;  // "dense bfloat16 (aten_aten)", "before saving"
  double ratio = 0;  // the time of `against` divided by that of the subject; above 1: the subject is faster
  std::optional<double> low = {}, high = {};  // 95 % interval of the ratio; absent with too few rounds
  uint64_t samples = 0;
  double at_least = 1;    // the ratio that the claim needs; for kFaster, slower means below 1 / at_least
  bool required = false;  // false: the claim is reported and never fails a verdict
  Status status{};        // pass, fail or inconclusive
};

// Returns pass if the claim is true of the whole interval, fail if it is true of none of it, or else
// inconclusive. If a claim has another status, it was measured in doubt.
Status interval_status(const SpeedClaim& claim);

// Returns "SUBJECT: 2.10x [1.90, 2.30] faster than AGAINST", "SUBJECT: slower than AGAINST, 0.50x [0.48,
// 0.52]", ...
std::string claim_text(const SpeedClaim& claim);

// Returns the fields, and the text as "text".
nlohmann::ordered_json to_json(const SpeedClaim& claim);
// Throws std::runtime_error, which names the field.
SpeedClaim speed_claim_from_json(const nlohmann::ordered_json& json);

}  // namespace qcts
