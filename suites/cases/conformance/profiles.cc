// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cases/conformance/profiles.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "reference/schemes/scheme.h"
#include "reports/waivers.h"
#include "suites/base/did_you_mean.h"
#include "suites/base/paths.h"
#include "suites/cases/expand.h"
#include "suites/cases/named.h"
#include "suites/providers/reference_provider.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

std::set<std::string> family_names() {
  std::set<std::string> names;
  for (const Scheme* scheme : schemes()) names.emplace(scheme->family());
  return names;
}

std::set<std::string> policy_names() {
  std::set<std::string> names;
  for (const Scheme* scheme : schemes())
    for (const ActivationInfo& policy : scheme->activations()) names.emplace(policy.name);
  return names;
}

void require_known(const char* what, const std::string& word, const std::set<std::string>& known) {
  if (known.contains(word)) return;
  throw std::runtime_error(std::string("no ") + what + " '" + word + "'" +
                           did_you_mean(word, {known.begin(), known.end()}));
}

template <typename Value, typename Wanted>
bool is_in(const std::vector<Value>& values, const Wanted& value) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}

// Each option has to change what is asked of some scheme.
void require_played(const Profile& profile) {
  for (const std::string& option : profile.options)
    if (std::ranges::none_of(schemes(), [&](const Scheme* scheme) {
          return profile.has(Op::quantize, *scheme) && played_recipe(*scheme, {option});
        }))
      throw std::runtime_error("option '" + option + "' changes none of its schemes");
}

Profile profile_from(const std::string& name, const Json& json) {
  static const std::set<std::string> kFamilies = family_names(), kPolicies = policy_names();
  static const std::set<std::string> kKeys = {"about", "families", "schemes", "ops", "policies", "options"};
  for (const auto& [key, value] : json.items()) require_known("key", key, kKeys);
  Profile profile;
  profile.name = name;
  profile.about = json.at("about");
  profile.families = json.at("families");
  profile.schemes = json.value("schemes", std::vector<std::string>());
  profile.options = json.value("options", std::vector<std::string>());
  if (profile.families.empty()) throw std::runtime_error("families: empty");
  for (const std::string& family : profile.families) require_known("family", family, kFamilies);
  for (const Json& word : json.value("ops", Json::array())) {
    const std::optional<Op> op = find_op(word.get<std::string>());
    if (!op || *op == Op::file) throw std::runtime_error("no operation '" + word.get<std::string>() + "'");
    profile.ops.push_back(*op);
  }
  profile.policies = json.value("policies", std::vector<std::string>());
  for (const std::string& policy : profile.policies) require_known("policy", policy, kPolicies);
  for (const std::string& glob : profile.schemes)
    if (std::ranges::none_of(schemes(), [&](const Scheme* scheme) {
          return is_in(profile.families, scheme->family()) && glob_match(glob, scheme->name());
        }))
      throw std::runtime_error("no scheme of its families fits '" + glob + "'");
  require_played(profile);
  return profile;
}

bool has(const Profile& profile, const Case& c) {
  return profile.has(c.id.op, *c.scheme) && is_in(profile.policies, c.activation().name());
}

}  // namespace

std::filesystem::path profiles_file() { return repository_root() / "suites" / "profiles.json"; }

std::vector<Profile> load_profiles(const std::filesystem::path& file) {
  std::vector<Profile> profiles;
  for (const std::string& family : family_names())
    profiles.push_back({family, "every operation and policy of " + family, {family}, {}, {}, {}, {}});
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file.string() + ": cannot be read");
  std::string entry = "profiles";
  try {
    const Json json = Json::parse(in);
    if (json.size() != 2 || json.at("schema") != 1)
      throw std::runtime_error("want {\"schema\": 1, \"profiles\": {...}}");
    for (const auto& [name, value] : json.at("profiles").items()) {
      entry = name;
      if (std::ranges::find(profiles, name, &Profile::name) != profiles.end())
        throw std::runtime_error("the name is taken");
      profiles.push_back(profile_from(name, value));
    }
  } catch (const std::exception& error) {
    throw std::runtime_error(file.string() + ": " + entry + ": " + error.what());
  }
  return profiles;
}

std::vector<Profile> profiles_named(std::string_view words, const std::vector<Profile>& known) {
  std::vector<Profile> found;
  std::istringstream in{std::string(words)};
  for (std::string word; in >> word;) {
    const auto one = std::ranges::find(known, word, &Profile::name);
    if (one == known.end()) {
      std::vector<std::string> names;
      for (const Profile& profile : known) names.push_back(profile.name);
      throw std::runtime_error("no profile '" + word + "'" + did_you_mean(word, names));
    }
    found.push_back(*one);
  }
  return found;
}

bool Profile::has(Op op, const Scheme& scheme) const {
  return is_in(families, scheme.family()) && is_in(ops, op) &&
         (schemes.empty() || std::ranges::any_of(schemes, [&](const std::string& glob) {
            return glob_match(glob, scheme.name());
          }));
}

PlayedProfiles::PlayedProfiles(const std::vector<Profile>& profiles) {
  std::set<std::string> all;
  for (const Scheme* scheme : schemes())
    for (const Op op : {Op::quantize, Op::quantize_activation}) {
      const Profile* first = nullptr;
      for (const Profile& profile : profiles) {
        if (!profile.has(op, *scheme)) continue;
        if (first == nullptr) first = &profile;
        if (first->options != profile.options &&
            (played_recipe(*scheme, first->options) || played_recipe(*scheme, profile.options)))
          throw std::runtime_error(first->name + " and " + profile.name + " set different options for " +
                                   std::string(scheme->name()));
      }
      if (first == nullptr) continue;
      if (std::optional<PlayedRecipe> recipe = played_recipe(*scheme, first->options)) {
        recipes_[{op, scheme}] = *std::move(recipe);
        all.insert(first->options.begin(), first->options.end());
      }
    }
  options_.assign(all.begin(), all.end());
}

const PlayedRecipe* PlayedProfiles::recipe(Op op, const Scheme& scheme) const {
  const auto found = recipes_.find({op, &scheme});
  return found == recipes_.end() ? nullptr : &found->second;
}

std::vector<std::string> profile_cases(const std::vector<Profile>& profiles,
                                       const std::vector<std::string>& mustpass, const Fixtures& fixtures) {
  std::set<std::string> ids;
  if (profiles.empty()) return {};
  Plan plan = named_plan(kCompletePlan);
  std::erase(plan.kinds, Kind::latency);
  Registry registry;
  registry.add(builtin_provider());
  registry.add(reference_provider());
  for (const Case& c : expand(plan, {fixtures.goldens, fixtures.malformed, &registry})) {
    if (c.id.op == Op::file || c.scheme == nullptr) continue;
    if (std::ranges::any_of(profiles, [&](const Profile& profile) { return has(profile, c); }) &&
        std::ranges::binary_search(mustpass, c.id.text()))
      ids.insert(c.id.text());
  }
  return {ids.begin(), ids.end()};
}

}  // namespace qcts
