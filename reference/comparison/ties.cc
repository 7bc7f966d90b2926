// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/ties.h"

#include <set>
#include <vector>

#include "reference/dialects/names/model_names.h"

namespace qcts {

TensorsByName::TensorsByName(const Checkpoint& checkpoint, const Checkpoint& other) {
  for (const NamedTensor& tensor : checkpoint.tensors) by_name_.emplace(tensor.name, &tensor);
  if (!checkpoint.config.is_object()) return;
  std::vector<std::string> on_disk;
  std::vector<const NamedTensor*> missing;
  for (const NamedTensor& tensor : checkpoint.tensors) on_disk.push_back(tensor.name);
  for (const NamedTensor& tensor : other.tensors)
    if (!by_name_.contains(tensor.name)) missing.push_back(&tensor);
  for (const NamedTensor* tensor : missing) on_disk.push_back(tensor->name);
  const std::vector<MemoryNames> in_memory = memory_names(checkpoint.config, on_disk);
  std::map<std::string, const NamedTensor*> stored;
  std::vector<std::string> all;
  std::set<std::string> names;
  for (size_t i = 0; i < in_memory.size(); ++i) {
    all.push_back(in_memory[i].names[0]);
    if (i >= checkpoint.tensors.size() || in_memory[i].is_converted) continue;
    names.insert(all.back());
    stored.emplace(all.back(), &checkpoint.tensors[i]);
  }
  const TiedTwins twins(ModelNames(checkpoint.config).tied(all), names);
  for (size_t i = 0; i < missing.size(); ++i)
    if (const std::string* twin = twins.twin_of(all[checkpoint.tensors.size() + i]))
      twins_.emplace(missing[i]->name, stored.at(*twin));
}

const NamedTensor* TensorsByName::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const NamedTensor* TensorsByName::find(const NamedTensor& tensor) const {
  if (const NamedTensor* same = find(std::string_view(tensor.name))) return same;
  const auto twin = twins_.find(tensor.name);
  return twin == twins_.end() || twin->second->shape != tensor.shape ? nullptr : twin->second;
}

}  // namespace qcts
