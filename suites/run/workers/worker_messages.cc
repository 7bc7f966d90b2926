// SPDX-License-Identifier: BSD-3-Clause
// The lines between a worker and its parent.
#include <stdexcept>
#include <utility>

#include "suites/providers/remote_protocol.h"
#include "suites/run/workers/worker.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

Json claims_json(uint32_t claims) {
  Json names = Json::array();
  const std::pair<uint32_t, const char*> known[] = {{QCTS_CLAIM_BIT_EXACT, "bit_exact"},
                                                    {QCTS_CLAIM_DETERMINISTIC, "deterministic"},
                                                    {QCTS_CLAIM_THREAD_INVARIANT, "thread_invariant"},
                                                    {QCTS_CLAIM_BATCH_INVARIANT, "batch_invariant"},
                                                    {QCTS_CLAIM_EMULATED, "emulated"},
                                                    {QCTS_CLAIM_KEEPS_BYTES, "keeps_bytes"},
                                                    {QCTS_CLAIM_SCHEDULES, "schedules"},
                                                    {QCTS_CLAIM_CAPTURABLE, "capturable"}};
  for (const auto& [bit, name] : known)
    if (claims & bit) names.push_back(name);
  return names;
}

}  // namespace

Json to_json(const WorkerOptions& options) {
  Json fixtures = Json::array();
  for (const std::filesystem::path& folder : options.fixtures) fixtures.push_back(folder.string());
  return {{"provider", options.provider},
          {"fixtures", fixtures},
          {"fixtures_known", options.fixture_files == Files::known},
          {"isolation", static_cast<int>(options.isolation)},
          {"device", options.device ? Json(*options.device) : Json()},
          {"settings", to_json(options.settings)},
          {"memory_limit_bytes", options.memory_limit_bytes}};
}

WorkerOptions worker_options_from_json(const Json& json) {
  WorkerOptions options;
  options.provider = json.at("provider");
  for (const Json& folder : json.at("fixtures")) options.fixtures.emplace_back(folder.get<std::string>());
  options.fixture_files = json.at("fixtures_known").get<bool>() ? Files::known : Files::checked;
  options.isolation = static_cast<Isolation>(json.at("isolation").get<int>());
  if (const Json& device = json.at("device"); !device.is_null()) options.device = device.get<int>();
  options.settings = judge_settings_from_json(json.at("settings"));
  options.memory_limit_bytes = json.at("memory_limit_bytes");
  return options;
}

Json provider_json(const Registry& registry, const std::string& name) {
  Json json = {{"name", name},  {"version", ""}, {"url", ""},
               {"choices", ""}, {"library", ""}, {"implementations", Json::array()}};
  for (const ProviderInfo& info : registry.providers())
    if (info.name == name) {
      json["version"] = info.version;
      json["url"] = info.url;
      json["choices"] = info.choices;
      json["library"] = info.library;
    }
  for (const Implementation& implementation : registry.implementations()) {
    if (implementation.provider != name) continue;
    const qcts_kernel& kernel = *implementation.kernel;
    const std::string refusal = implementation.machine_refusal();
    json["implementations"].push_back(
        {{"op", op_name(kernel.op)},
         {"scheme", kernel.scheme},
         {"variant", kernel.variant},
         {"description", kernel.description == nullptr ? "" : kernel.description},
         {"claims", claims_json(kernel.claims)},
         {"runnable", refusal.empty()},
         {"refusal", refusal}});
    if (kernel.op != QCTS_OP_LINEAR) continue;
    json["implementations"].back()["numerics"] = numerics_json(kernel.numerics);
    if (kernel.fused_sums.terms != 0)
      json["implementations"].back()["fused_sums"] = fused_sums_json(kernel.fused_sums);
  }
  for (const Implementation& implementation : registry.file_implementations())
    if (implementation.provider == name)
      json["implementations"].push_back({{"op", "load_save"},
                                         {"scheme", "any"},
                                         {"variant", implementation.kernel->variant},
                                         {"description", "loads and saves checkpoints"},
                                         {"claims", claims_json(implementation.file_claims)},
                                         {"runnable", true},
                                         {"refusal", ""}});
  return json;
}

Json to_json(const WorkerReady& ready) {
  if (!ready.error.empty()) return {{"ready", 1}, {"error", ready.error}};
  Json offers = Json::array();
  for (const Offer& offer : ready.offers) offers.push_back(to_json(offer));
  return {{"ready", 1}, {"provider", ready.provider}, {"info", ready.info}, {"offers", offers}};
}

WorkerReady worker_ready_from_json(const Json& json) {
  if (!json.is_object() || json.value("ready", 0) != 1)
    throw std::runtime_error("the worker's first line is not a handshake");
  WorkerReady ready;
  ready.error = json.value("error", "");
  if (!ready.error.empty()) return ready;
  ready.provider = json.at("provider");
  ready.info = json.at("info");
  for (const Json& offer : json.at("offers")) ready.offers.push_back(offer_from_json(offer));
  return ready;
}

Json replay_key(const Replay& replay, const std::string& variant) {
  return {{"replay", to_json(replay)}, {"variant", variant}};
}

std::string support_line(const std::vector<std::string>& keys) {
  std::string line = R"({"supports":[)";
  for (const std::string& key : keys) line += (line.ends_with('[') ? "" : ",") + key;
  return line + "]}";
}

}  // namespace qcts
