// SPDX-License-Identifier: BSD-3-Clause
#include "suites/run/environment/environment.h"

#include <ctime>
#include <fstream>
#include <stdexcept>

#include <sys/utsname.h>

#include "kernels/abi/qcts_kernel.h"
#include "kernels/machine/machine.h"
#include "reference/schemes/choices/choices.h"
#include "reference/schemes/scheme.h"
#include "suites/base/paths.h"

namespace qcts {

using Json = nlohmann::ordered_json;

std::string suite_version() { return QCTS_VERSION; }

Json environment_json() {
  const Machine& here = machine();
  utsname os{};
  ::uname(&os);
#ifdef NDEBUG
  const bool assertions = false;
#else
  const bool assertions = true;
#endif
#if defined(__clang__)
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return {{"hostname", os.nodename},
          {"cpu_model", here.cpu_model},
          {"cpu_family", here.cpu_family},
          {"features", here.features},
          {"logical_cpus", here.logical_cpus},
          {"l2_bytes", here.l2_bytes},
          {"l3_bytes", here.l3_bytes},
          {"weight_reading", name_of(here.weight_reading)},
          {"os", std::string(os.sysname) + " " + os.release + " " + os.machine},
          {"compiler", compiler},
          {"build", assertions ? "with assertions" : "release"},
          {"abi_version", QCTS_ABI_VERSION}};
}

Json schemes_json(std::span<const Scheme* const> others) {
  Json all = Json::array();
  std::vector<const Scheme*> described(schemes().begin(), schemes().end());
  described.insert(described.end(), others.begin(), others.end());
  for (const Scheme* scheme : described) {
    Json layouts = Json::array();
    for (const LayoutInfo& layout : scheme->layouts())
      layouts.push_back({{"name", layout.name}, {"source", layout.source}, {"confirmed", layout.confirmed}});
    Json activations = Json::array();
    for (const ActivationInfo& policy : scheme->activations())
      activations.push_back({{"name", policy.name}, {"source", policy.source}});
    all.push_back({{"name", scheme->name()},
                   {"family", scheme->family()},
                   {"summary", scheme->summary()},
                   {"source", scheme->source()},
                   {"group", scheme->group()},
                   {"meaning", scheme->meaning()},
                   {"activations", activations},
                   {"layouts", layouts}});
  }
  return all;
}

Json kept_layouts_json() {
  Json kept = Json::array();
  for (const KeptLayout& layout : kept_layouts())
    kept.push_back({{"name", layout.name},
                    {"holds", layout.holds},
                    {"written_by", layout.written_by},
                    {"why", layout.why},
                    {"evidence", layout.evidence}});
  return kept;
}

Json choices_json() {
  Json ledger = Json::array();
  for (const ChoiceEntry& entry : choice_ledger()) {
    Json options = Json::array();
    for (const ChoiceOption& option : entry.options) {
      Json answering = Json::array();
      for (const Scheme* scheme : schemes())
        for (const ChoiceOption* chosen : choices_of(scheme->name(), scheme->family()))
          if (chosen == &option) answering.push_back(scheme->name());
      options.push_back({{"id", option.id},
                         {"answer", option.answer},
                         {"schemes", answering},
                         {"others", option.who},
                         {"evidence", option.evidence}});
    }
    ledger.push_back({{"id", entry.id},
                      {"question", entry.question},
                      {"a_provider_may_differ", entry.open},
                      {"options", options}});
  }
  Json claims = Json::array();
  for (const StaleClaim& claim : stale_claims())
    claims.push_back({{"id", claim.id},
                      {"claim", claim.claim},
                      {"source", claim.source},
                      {"fact", claim.fact},
                      {"evidence", claim.evidence}});
  return {{"choices", ledger}, {"claims", claims}, {"kept_layouts", kept_layouts_json()}};
}

Json readers_json() {
  const std::filesystem::path path = repository_root() / "fixtures" / "readers.json";
  std::ifstream in(path);
  if (!in) return nullptr;
  const Json json = Json::parse(in, nullptr, false);
  if (json.is_discarded()) throw std::runtime_error(path.string() + ": not JSON");
  return json;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace qcts
