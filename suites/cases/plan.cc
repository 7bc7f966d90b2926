// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/plan.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "suites/inputs/far_weight.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

class PlanReader {
 public:
  PlanReader(const Json& json, std::string file) : json_(json), file_(std::move(file)) {
    if (!json.is_object()) throw std::runtime_error(file_ + ": a plan is a JSON object");
  }

  template <typename T>
  T get(const char* key) {
    seen_.insert(key);
    if (!json_.contains(key)) fail(key, "is missing");
    try {
      return json_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      fail(key, "has the wrong type: " + json_.at(key).dump());
    }
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw std::runtime_error(file_ + ": field '" + key + "' " + what);
  }

  void refuse_unknown() const {
    for (const auto& [key, value] : json_.items())
      if (!seen_.contains(key)) fail(key, "is unknown");
  }

 private:
  const Json& json_;
  std::string file_;
  std::set<std::string> seen_;
};

template <typename Known>
void read_words(PlanReader& reader, const char* key, std::vector<std::string>& words, Known known) {
  words = reader.get<std::vector<std::string>>(key);
  for (const std::string& word : words)
    if (!known(word)) reader.fail(key, "names something unknown: '" + word + "'");
}

// Returns none if the plan does not have the key.
std::vector<Generator> read_generators(PlanReader& reader, const Json& json, const char* key) {
  std::vector<Generator> found;
  if (!json.contains(key)) return found;
  for (const std::string& name : reader.get<std::vector<std::string>>(key)) {
    const std::optional<Generator> generator = find_generator(name);
    if (!generator) reader.fail(key, "names something unknown: '" + name + "'");
    found.push_back(*generator);
  }
  return found;
}

// Returns none if the plan does not have the key.
std::map<Generator, int64_t> read_scheme_limits(PlanReader& reader, const Json& json) {
  constexpr const char* kKey = "schemes_a_family";
  std::map<Generator, int64_t> limits;
  if (!json.contains(kKey)) return limits;
  for (const auto& [name, limit] : reader.get<std::map<std::string, int64_t>>(kKey)) {
    const std::optional<Generator> generator = find_generator(name);
    if (!generator) reader.fail(kKey, "names something unknown: '" + name + "'");
    if (limit < 0) reader.fail(kKey, "must have no negative numbers");
    limits[*generator] = limit;
  }
  return limits;
}

std::optional<int64_t> read_share(PlanReader& reader, const Json& json, const char* key) {
  if (!json.contains(key)) return std::nullopt;
  const auto share = reader.get<int64_t>(key);
  if (share < 1) reader.fail(key, "must be positive");
  return share;
}

void read_kills(PlanReader& reader, Plan& plan) {
  for (const std::string& name : reader.get<std::vector<std::string>>("kills")) {
    const std::optional<MutantKind> kind = find_mutant_kind(name);
    if (!kind) reader.fail("kills", "names an unknown kind of mutant: '" + name + "'");
    plan.kills.push_back(*kind);
  }
}

bool is_activation(const std::string& name) {
  for (const Scheme* scheme : schemes())
    if (scheme->find_activation(name)) return true;
  return false;
}

LatencyBlocks read_blocks(const Json& json, const std::string& where) {
  PlanReader reader(json, where);
  LatencyBlocks blocks;
  read_words(reader, "schemes", blocks.schemes,
             [](const auto& name) { return find_scheme(name) != nullptr; });
  blocks.m = reader.get<std::vector<int64_t>>("m");
  blocks.shrink = reader.get<int64_t>("shrink");
  reader.refuse_unknown();
  if (blocks.schemes.empty()) reader.fail("schemes", "is empty");
  if (blocks.m.empty() || std::ranges::min(blocks.m) < 1) reader.fail("m", "must be positive numbers");
  if (std::ranges::find(kBlockShrinks, blocks.shrink) == std::end(kBlockShrinks))
    reader.fail("shrink", "must be 1, 2, 4, 8, 16 or 32");
  return blocks;
}

void read_latency(PlanReader& reader, const Json& json, const std::string& path, Plan& plan) {
  for (const std::string& name : reader.get<std::vector<std::string>>("latency_ops")) {
    const std::optional<Op> op = find_op(name);
    if (!op || *op == Op::file) reader.fail("latency_ops", "names something unknown: '" + name + "'");
    plan.latency_ops.push_back(*op);
  }
  read_words(reader, "latency_schemes", plan.latency_schemes,
             [](const auto& name) { return find_scheme(name) != nullptr; });
  read_words(reader, "latency_activations", plan.latency_activations, is_activation);
  read_words(reader, "latency_cache_states", plan.latency_cache_states,
             [](const auto& word) { return word == "cold" || word == "warm"; });
  plan.latency_best_only = reader.get<bool>("latency_best_only");
  if (json.contains("latency_of_emulated"))
    plan.latency_of_emulated = reader.get<bool>("latency_of_emulated");
  if (json.contains("latency_blocks"))
    plan.latency_blocks = read_blocks(reader.get<Json>("latency_blocks"), path + ": latency_blocks");
  if (plan.latency_ops.empty()) reader.fail("latency_ops", "is empty");
  if (plan.latency_cache_states.empty()) reader.fail("latency_cache_states", "is empty");
  if (!(plan.latency_budget_s > 0)) reader.fail("latency_budget_s", "must be positive if latency is timed");
}

// Replaces the keys of older versions by today's.
void rename_old_keys(Json& json, const std::string& path) {
  if (!json.is_object()) return;
  constexpr std::pair<const char*, const char*> kRenamed[] = {
      {"every_input", "all_inputs"},
      {"schemes_an_input", "schemes_per_input"},
      {"latency_weights", "latency_cache_states"},
  };
  for (const auto& [old_key, key] : kRenamed) {
    if (!json.contains(old_key)) continue;
    if (json.contains(key))
      throw std::runtime_error(path + ": has both '" + key + "' and its old name '" + old_key + "'");
    json[key] = std::move(json[old_key]);
    json.erase(old_key);
  }
}

}  // namespace

Plan load_plan(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  Json json;
  try {
    json = Json::parse(in);
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(path.string() + ": not JSON: " + error.what());
  }
  rename_old_keys(json, path.string());
  PlanReader reader(json, path.string());
  Plan plan;
  plan.name = path.stem().string();
  plan.description = reader.get<std::string>("description");
  for (const std::string& name : reader.get<std::vector<std::string>>("kinds")) {
    const std::optional<Kind> kind = kind_from_name(name);
    if (!kind || static_cast<int>(*kind) >= kPlanKindCount)
      reader.fail("kinds", "names an unknown kind: '" + name + "'");
    for (const Kind other : plan.kinds)
      if (other == *kind) reader.fail("kinds", "names '" + name + "' twice");
    plan.kinds.push_back(*kind);
  }
  if (plan.kinds.empty()) reader.fail("kinds", "is empty");
  plan.all_variants = reader.get<bool>("all_variants");
  plan.all_inputs = reader.get<bool>("all_inputs");
  plan.schemes_per_input = read_share(reader, json, "schemes_per_input");
  plan.determinism_share = read_share(reader, json, "determinism_share");
  plan.emulated_share = read_share(reader, json, "emulated_share");
  plan.once_a_family = read_generators(reader, json, "once_a_family");
  plan.schemes_a_family = read_scheme_limits(reader, json);
  plan.other_dtypes_a_family = read_share(reader, json, "other_dtypes_a_family");
  plan.best_variant_alone = read_generators(reader, json, "best_variant_alone");
  plan.emulated_never = read_generators(reader, json, "emulated_never");
  plan.emulated_once_a_family = read_generators(reader, json, "emulated_once_a_family");
  if (json.contains("far_schemes"))
    read_words(reader, "far_schemes", plan.far_schemes, [](const auto& name) {
      const Scheme* scheme = find_scheme(name);
      return scheme != nullptr && far_input(*scheme).has_value();
    });
  if (json.contains("kills")) read_kills(reader, plan);
  if (json.contains("determinism_once")) plan.determinism_once = reader.get<bool>("determinism_once");
  if (json.contains("costly_share")) plan.costly_share = reader.get<int64_t>("costly_share");
  if (plan.costly_share < 1) reader.fail("costly_share", "must be positive");
  if (json.contains("emulated_once")) plan.emulated_once = reader.get<bool>("emulated_once");
  if (json.contains("cover")) {
    plan.cover = reader.get<std::vector<std::string>>("cover");
    for (const std::string& id : *plan.cover)
      if (!parse_case_id(id)) reader.fail("cover", "names an invalid case id: '" + id + "'");
  }
  plan.case_timeout_s = reader.get<double>("case_timeout_s");
  plan.latency_budget_s = reader.get<double>("latency_budget_s");
  plan.latency_m = reader.get<std::vector<int64_t>>("latency_m");
  plan.latency_shapes = reader.get<std::vector<std::pair<int64_t, int64_t>>>("latency_shapes");
  if (std::find(plan.kinds.begin(), plan.kinds.end(), Kind::latency) != plan.kinds.end())
    read_latency(reader, json, path.string(), plan);
  reader.refuse_unknown();
  if (!(plan.case_timeout_s > 0)) reader.fail("case_timeout_s", "must be positive");
  if (!(plan.latency_budget_s >= 0)) reader.fail("latency_budget_s", "must not be negative");
  for (const int64_t m : plan.latency_m)
    if (m < 1) reader.fail("latency_m", "must be positive");
  for (const auto& [n, k] : plan.latency_shapes)
    if (n < 1 || k < 1) reader.fail("latency_shapes", "must be positive");
  return plan;
}

}  // namespace qcts
