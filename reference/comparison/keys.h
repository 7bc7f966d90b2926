// SPDX-License-Identifier: BSD-3-Clause
// Does a file fit a model? Names and shapes of its tensors against those of a skeleton: what
// Module.load_state_dict(strict=True, assign=True) asks, without the module.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// One name that both have.
struct MatchedKey {
  std::string name;
  std::string before, after;  // in the skeleton and in the file: "Tensor float32 [64,32]"
};

struct KeyMatch {
  std::vector<std::string> missing;     // in the skeleton alone
  std::vector<std::string> unexpected;  // in the file alone
  std::vector<MatchedKey> mismatched;   // of another shape
  std::vector<MatchedKey> matched;
  bool all_matched() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// The skeleton is a state dict, on `meta` or with its elements; each list in the order of its own file.
KeyMatch match_keys(const Checkpoint& file, const Checkpoint& skeleton);

}  // namespace qcts
