// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/tied_weights.h"

#include <algorithm>
#include <map>

#include "reference/dialects/names/model_names.h"

namespace qcts {
namespace {

// The tensors of a folder by their names in memory.
std::map<std::string, size_t> places_in_memory(const Checkpoint& checkpoint) {
  std::vector<std::string> on_disk;
  for (const NamedTensor& tensor : checkpoint.tensors) on_disk.push_back(tensor.name);
  const std::vector<MemoryNames> names = memory_names(checkpoint.config, on_disk);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < names.size(); ++i)
    if (!names[i].is_converted) places.emplace(names[i].names[0], i);
  return places;
}

std::string name_of_class(const nlohmann::ordered_json& config) {
  const auto classes = config.find("architectures");
  const bool named = classes != config.end() && classes->is_array() && !classes->empty();
  return named && classes->front().is_string() ? classes->front().get<std::string>()
                                               : "a model without architectures";
}

}  // namespace

std::vector<TiedName> add_tied_weights(Checkpoint& checkpoint) {
  std::vector<TiedName> added;
  if (!checkpoint.config.is_object()) return added;
  const ModelNames model(checkpoint.config);
  if (!model.knows_class() && says_tied(checkpoint.config) == true)
    checkpoint.warnings.push_back("config.json ties weights, but qcts does not know which ones " +
                                  name_of_class(checkpoint.config) +
                                  " ties: OUT gets only the weights that IN stores, without the tied copies");
  const std::vector<TiedName> ties = model.single_ties();
  if (ties.empty()) return added;
  std::map<std::string, size_t> places = places_in_memory(checkpoint);
  const auto add = [&](const std::string& name, const std::string& source) {
    const auto stored = places.find(source);
    if (stored == places.end() || places.contains(name)) return false;
    NamedTensor copy = checkpoint.tensors[stored->second];
    added.push_back({name, copy.name});
    copy.name = name;
    places.emplace(name, checkpoint.tensors.size());
    checkpoint.tensors.push_back(std::move(copy));
    return true;
  };
  for (bool again = true; again;) {  // a weight may be tied to one that is tied itself
    again = false;
    for (const auto& [target, source] : ties) again = add(target, source) || add(source, target) || again;
  }
  std::erase_if(checkpoint.left_out, [&](const NotStored& name) {
    return std::ranges::find(added, name.name, &TiedName::target) != added.end();
  });
  return added;
}

}  // namespace qcts
