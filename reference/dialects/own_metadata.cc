// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/own_metadata.h"

#include <algorithm>
#include <set>

namespace qcts {

std::map<std::string, std::string> metadata_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> joined;
  for (const auto& file : checkpoint.safetensors)
    for (const auto& [key, value] : file->metadata) {
      const auto [place, fresh] = joined.try_emplace(key, value);
      if (fresh || place->second == value || key != "tensor_names") continue;
      nlohmann::ordered_json names = nlohmann::ordered_json::parse(place->second, nullptr, false);
      const nlohmann::ordered_json more = nlohmann::ordered_json::parse(value, nullptr, false);
      std::set<nlohmann::ordered_json> listed(names.begin(), names.end());
      for (const auto& name : more)
        if (listed.insert(name).second) names.push_back(name);
      place->second = names.dump();
    }
  return joined;
}

DescribedTensors::DescribedTensors(const Checkpoint& checkpoint) : dialect_(checkpoint.dialect) {
  if (dialect_ == "torchao_safetensors" || dialect_ == "torchao_2338") {
    for (const NamedTensor& tensor : checkpoint.tensors) {
      names_.insert(tensor.name);
      names_.insert(tensor.in_memory.begin(), tensor.in_memory.end());
    }
    for (const NotStored& name : checkpoint.left_out) names_.insert(name.name);
  }
}

std::optional<std::string> DescribedTensors::name_of(const std::string& key) const {
  if (names_.empty()) return std::nullopt;
  if (key == "tensor_names") return "";
  std::string name = key;
  if (dialect_ == "torchao_2338") {
    const size_t colon = key.rfind(':');
    const std::string_view word = std::string_view(key).substr(colon == std::string::npos ? 0 : colon + 1);
    constexpr std::string_view kWords[] = {"tensor_type", "input_quant_func", "quant_kwargs"};
    if (std::ranges::find(kWords, word) == std::end(kWords)) return std::nullopt;
    name = colon == std::string::npos ? "tensor" : key.substr(0, colon);
  }
  return names_.contains(name) ? std::optional(name) : std::nullopt;
}

std::map<std::string, std::string> own_metadata(const Checkpoint& checkpoint) {
  std::map<std::string, std::string> own = metadata_of(checkpoint);
  const DescribedTensors described(checkpoint);
  std::erase_if(own, [&](const auto& pair) { return described.name_of(pair.first).has_value(); });
  return own;
}

}  // namespace qcts
