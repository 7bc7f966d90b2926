// SPDX-License-Identifier: BSD-3-Clause
// Settings that a run sends to its judges once, for all cases.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "reports/caveat.h"

namespace qcts {

struct JudgeSettings {
  std::filesystem::path scratch;  // a folder in which a case may write
  std::filesystem::path targets;  // suites/targets
  std::string program;            // first word of a rerun line: "build/release/bin/qcts"
  // Options of a rerun in addition to --filter: "--plan quick --seed 7". By default there are none.
  std::string rerun_options;
  uint32_t threads = 1;           // used by numerics; determinism also tries other numbers
  double latency_budget_s = 3.0;  // budget per latency case
  Purpose purpose = Purpose::conformance;
  bool gate_latency = false;    // a missed latency target or speed claim fails
  bool is_peer = false;         // the provider is not under judgement, so its latency never gates
  uint64_t seed = 0;            // mixed into synthetic inputs
  bool is_seed_secret = false;  // verdicts do not reveal the seed
  // One in this many cases asks the costliest questions (Plan::costly_share).
  int64_t costly_share = 1;
  bool diagnose = true;  // numerics: name the fault of the weights that explains a failure
};

nlohmann::ordered_json to_json(const JudgeSettings& settings);
// Throws nlohmann::json::exception if a member is missing or has another type.
JudgeSettings judge_settings_from_json(const nlohmann::ordered_json& json);

// Returns the seed that a verdict may reveal.
std::optional<uint64_t> told_seed(const JudgeSettings& settings);
// Returns "build/release/bin/qcts run --filter 'FULL_ID' ...".
std::string rerun_line(const JudgeSettings& settings, const std::string& full_id);

}  // namespace qcts
