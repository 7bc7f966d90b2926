// SPDX-License-Identifier: BSD-3-Clause
// Divides the __metadata__ of safetensors into keys that describe tensors and keys that a user added.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Merges the __metadata__ of all shards; lists of tensor_names are concatenated.
std::map<std::string, std::string> metadata_of(const Checkpoint& checkpoint);

// Tells which keys of __metadata__ describe tensors in the checkpoint's dialect.
class DescribedTensors {
 public:
  explicit DescribedTensors(const Checkpoint& checkpoint);
  // Returns the name of the tensor that a key describes. Returns "" for a list of tensors.
  // Returns nullopt for any other key.
  std::optional<std::string> name_of(const std::string& key) const;

 private:
  std::string_view dialect_;
  std::set<std::string_view> names_;
};

// Returns the pairs that describe no tensor: "format", and the additional_metadata of pytorch/ao#2338.
std::map<std::string, std::string> own_metadata(const Checkpoint& checkpoint);

}  // namespace qcts
