// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/names/tied_names.h"

#include <algorithm>

#include "reference/dialects/names/name_rows.h"

namespace qcts {

using TiesJson = nlohmann::ordered_json;

std::optional<bool> says_tied(const TiesJson& config) {
  if (!config.is_object()) return std::nullopt;
  for (const TiesJson& said : {config, config.value("text_config", TiesJson())})
    if (said.is_object() && said.contains("tie_word_embeddings") && said["tie_word_embeddings"].is_boolean())
      return said["tie_word_embeddings"].get<bool>();
  return std::nullopt;
}

std::vector<TiedName> usual_ties(std::span<const std::string> targets, std::span<const std::string> sources) {
  constexpr std::string_view kEmbeddings[] = {"embed_tokens.weight",    "wte.weight",
                                              "word_embeddings.weight", "embed_in.weight",
                                              "shared.weight",          "tok_embeddings.weight"};
  std::multimap<std::string, std::string> pairs;
  for (const TiesJson& pair : name_row("e:", "")) pairs.emplace(pair[0], pair[1]);
  std::set<std::string_view> known(sources.begin(), sources.end());
  std::vector<TiedName> found;
  for (const std::string& target : targets) {
    for (auto [pair, last] = pairs.equal_range(target); pair != last; ++pair)
      if (known.contains(pair->second)) found.push_back({target, pair->second});
    if (!has_ending(target, "lm_head.weight")) continue;
    for (const std::string& source : sources)
      if (std::ranges::any_of(kEmbeddings, [&](std::string_view end) { return has_ending(source, end); }))
        found.push_back({target, source});
  }
  return found;
}

TiedTwins::TiedTwins(std::span<const TiedName> ties, const std::set<std::string>& stored) {
  std::map<std::string, std::vector<std::string>> groups;  // by source
  for (const TiedName& tie : ties) groups[tie.source].push_back(tie.target);
  for (auto& [source, targets] : groups) {
    targets.push_back(source);
    for (const std::string& name : targets)
      for (const std::string& other : targets)
        if (name != other && stored.contains(other)) twins_[name].push_back(other);
  }
}

const std::string* TiedTwins::twin_of(const std::string& name) const {
  const auto found = twins_.find(name);
  return found == twins_.end() ? nullptr : &found->second.back();
}

bool has_ending(std::string_view name, std::string_view ending) {
  return name.ends_with(ending) &&
         (name.size() == ending.size() || name[name.size() - ending.size() - 1] == '.');
}

}  // namespace qcts
