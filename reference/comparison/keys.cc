// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/keys.h"

#include <unordered_map>
#include <unordered_set>

#include "reference/comparison/words.h"

namespace qcts {
namespace {

std::string tensor_words(const NamedTensor& tensor) {
  return type_words(tensor) + " " + shape_words(tensor.shape);
}

}  // namespace

std::string type_words(const NamedTensor& tensor) {
  std::string words = tensor.type;
  if (!tensor.scheme.empty()) words += " " + tensor.scheme;
  if (tensor.activation != kWeightOnly) words += " " + std::string(tensor.activation.name());
  return words + " " + std::string(dtype_name(tensor.dtype));
}

KeyMatch match_keys(const Checkpoint& file, const Checkpoint& skeleton) {
  KeyMatch match;
  std::unordered_map<std::string_view, const NamedTensor*> held;
  for (const NamedTensor& tensor : file.tensors) held.emplace(tensor.name, &tensor);
  std::unordered_set<std::string_view> wanted;
  for (const NamedTensor& tensor : skeleton.tensors) {
    wanted.insert(tensor.name);
    const auto found = held.find(tensor.name);
    if (found == held.end()) {
      match.missing.push_back(tensor.name);
      continue;
    }
    const NamedTensor& other = *found->second;
    (other.shape == tensor.shape ? match.matched : match.mismatched)
        .push_back({tensor.name, tensor_words(tensor), tensor_words(other)});
  }
  for (const NamedTensor& tensor : file.tensors)
    if (!wanted.contains(tensor.name)) match.unexpected.push_back(tensor.name);
  return match;
}

}  // namespace qcts
