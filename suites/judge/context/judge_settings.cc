// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/context/judge_settings.h"

#include <nlohmann/json.hpp>

#include "suites/base/paths.h"

namespace qcts {

using Json = nlohmann::ordered_json;

Json to_json(const JudgeSettings& settings) {
  return {{"scratch", settings.scratch.string()},
          {"targets", settings.targets.string()},
          {"program", settings.program},
          {"rerun_options", settings.rerun_options},
          {"threads", settings.threads},
          {"latency_budget_s", settings.latency_budget_s},
          {"for_check", settings.purpose == Purpose::check},
          {"gate_latency", settings.gate_latency},
          {"is_peer", settings.is_peer},
          {"seed", settings.seed},
          {"is_seed_secret", settings.is_seed_secret},
          {"costly_share", settings.costly_share},
          {"diagnose", settings.diagnose}};
}

JudgeSettings judge_settings_from_json(const Json& json) {
  JudgeSettings settings;
  settings.scratch = json.at("scratch").get<std::string>();
  settings.targets = json.at("targets").get<std::string>();
  settings.program = json.at("program");
  settings.rerun_options = json.at("rerun_options");
  settings.threads = json.at("threads");
  settings.latency_budget_s = json.at("latency_budget_s");
  settings.purpose = json.at("for_check").get<bool>() ? Purpose::check : Purpose::conformance;
  settings.gate_latency = json.at("gate_latency");
  settings.is_peer = json.at("is_peer");
  settings.seed = json.at("seed");
  settings.is_seed_secret = json.at("is_seed_secret");
  settings.costly_share = json.at("costly_share");
  settings.diagnose = json.at("diagnose");
  return settings;
}

std::optional<uint64_t> told_seed(const JudgeSettings& settings) {
  return settings.is_seed_secret ? std::nullopt : std::optional(settings.seed);
}

std::string rerun_line(const JudgeSettings& settings, const std::string& full_id) {
  return settings.program + " run --filter " + shell_word(full_id) +
         (settings.rerun_options.empty() ? "" : " " + settings.rerun_options);
}

}  // namespace qcts
