// SPDX-License-Identifier: BSD-3-Clause
// Finds the tensors of a checkpoint by name, tied ones included.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// transformers stores a tied output layer under the name of the input embeddings alone, and fills it again
// when it loads the folder. load_state_dict() of a file does not.
class TensorsByName {
 public:
  explicit TensorsByName(const Checkpoint& checkpoint);

  const NamedTensor* find(std::string_view name) const;  // nullptr if no tensor has the name
  // Returns the tensor of the same name. In a folder whose config.json ties the weights, `tensor` may be an
  // output layer or input embeddings; its counterpart then is the other of the two, with the same shape.
  const NamedTensor* find(const NamedTensor& tensor) const;

 private:
  std::unordered_map<std::string_view, const NamedTensor*> by_name_;
  std::vector<const NamedTensor*> tied_;  // input embeddings and output layers; empty if nothing is tied
};

}  // namespace qcts
