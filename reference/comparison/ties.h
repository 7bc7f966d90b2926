// SPDX-License-Identifier: BSD-3-Clause
// Finds the tensors of a checkpoint by name, tied ones included.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// transformers stores a tied weight under one of its names, and fills the others when it loads the folder.
// load_state_dict() of a file does not.
class TensorsByName {
 public:
  // `other` is the checkpoint whose tensors are looked for. Both must live as long as the result.
  TensorsByName(const Checkpoint& checkpoint, const Checkpoint& other);

  const NamedTensor* find(std::string_view name) const;  // nullptr if no tensor has the name
  // Returns the tensor of the same name. In a folder whose config.json ties weights, returns the one that has
  // the values of `tensor` under another name, if it has its shape.
  const NamedTensor* find(const NamedTensor& tensor) const;

 private:
  std::unordered_map<std::string_view, const NamedTensor*> by_name_;
  std::map<std::string, const NamedTensor*, std::less<>> twins_;  // of tensors that are not stored
};

}  // namespace qcts
