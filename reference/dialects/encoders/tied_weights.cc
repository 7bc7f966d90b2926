// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/tied_weights.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string_view>

namespace qcts {
namespace {

struct TiedArchitectures {
  bool by_default;
  std::string_view pairs, architectures;
};
constexpr TiedArchitectures kTied[] = {
#define QCTS_TIED(by_default, pairs, architectures) {by_default, pairs, architectures},
#include "reference/dialects/encoders/tied_weights.inc"
#undef QCTS_TIED
};

std::vector<std::string> split_words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// What config.json or its text_config says; nullopt where it says nothing.
std::optional<bool> says_tied(const nlohmann::ordered_json& config) {
  if (!config.is_object()) return std::nullopt;
  if (const auto said = config.find("tie_word_embeddings"); said != config.end() && said->is_boolean())
    return said->get<bool>();
  const auto text = config.find("text_config");
  return text == config.end() ? std::nullopt : says_tied(*text);
}

std::vector<std::string> architectures_of(const nlohmann::ordered_json& config) {
  std::vector<std::string> names;
  const auto listed = config.find("architectures");
  if (listed == config.end() || !listed->is_array()) return names;
  for (const auto& name : *listed)
    if (name.is_string()) names.push_back(name);
  return names;
}

const TiedArchitectures* find_tied(const std::vector<std::string>& architectures) {
  for (const TiedArchitectures& row : kTied)
    for (const std::string& known : split_words(row.architectures))
      if (std::ranges::find(architectures, known) != architectures.end()) return &row;
  return nullptr;
}

// Adds `name` with the elements of `source`, if only the latter is stored.
bool add_copy(Checkpoint& checkpoint, const std::string& name, const std::string& source) {
  const auto find = [&](const std::string& wanted) {
    return std::ranges::find(checkpoint.tensors, wanted, &NamedTensor::name);
  };
  const auto stored = find(source);
  if (stored == checkpoint.tensors.end() || find(name) != checkpoint.tensors.end()) return false;
  NamedTensor copy = *stored;
  copy.name = name;
  checkpoint.tensors.push_back(std::move(copy));
  return true;
}

}  // namespace

std::vector<TiedWeight> add_tied_weights(Checkpoint& checkpoint) {
  std::vector<TiedWeight> added;
  const std::optional<bool> said = says_tied(checkpoint.config);
  if (!checkpoint.config.is_object() || said == false) return added;
  const std::vector<std::string> architectures = architectures_of(checkpoint.config);
  const TiedArchitectures* row = find_tied(architectures);
  if (!row && said == true)
    checkpoint.warnings.push_back(
        "config.json ties weights, and which ones is not known here for " +
        (architectures.empty() ? "a model without architectures" : architectures.front()) +
        ": OUT holds what IN stores");
  if (!row || !said.value_or(row->by_default)) return added;
  for (const std::string& pair : split_words(row->pairs)) {
    const size_t middle = pair.find('=');
    const std::string tied = pair.substr(0, middle), source = pair.substr(middle + 1);
    if (add_copy(checkpoint, tied, source)) added.push_back({tied, source});
    if (add_copy(checkpoint, source, tied)) added.push_back({source, tied});
  }
  std::erase_if(checkpoint.left_out, [&](const NotStored& name) {
    return std::ranges::find(added, name.name, &TiedWeight::name) != added.end();
  });
  return added;
}

}  // namespace qcts
