// SPDX-License-Identifier: BSD-3-Clause
// Checks whether a file fits a model: compares names and shapes of its tensors with those of a skeleton, as
// Module.load_state_dict(strict=True, assign=True) does, without the module.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Returns "Int8Tensor int8_row float32": the class, the scheme, a policy of the activations, the logical
// dtype.
std::string type_words(const NamedTensor& tensor);

// A name that both have.
struct MatchedKey {
  std::string name;
  std::string before, after;  // in the skeleton and in the file: "Tensor float32 [64,32]"
};

struct KeyMatch {
  std::vector<std::string> missing;     // only in the skeleton
  std::vector<std::string> unexpected;  // only in the file
  std::vector<MatchedKey> mismatched;   // their shapes differ
  std::vector<MatchedKey> matched;
  bool all_matched() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// The skeleton is a state dict, on `meta` or with elements. Each list is in the order of its own file.
KeyMatch match_keys(const Checkpoint& file, const Checkpoint& skeleton);

}  // namespace qcts
