// SPDX-License-Identifier: BSD-3-Clause
// Checks whether a file fits a model, without the module.
// Compares the names and shapes of the file's tensors with a skeleton.
// Older names and shapes match where load_state_dict() takes them: those of weight_norm, and [1] for a
// scalar. Module.load_state_dict(strict=True, assign=True) compares in the same way; for a folder whose
// config.json ties weights, from_pretrained of transformers does.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

// Returns the class, the scheme, a policy of the activations and the logical dtype: "Int8Tensor int8_row
// float32".
std::string type_words(const NamedTensor& tensor);

// A name that both files have.
struct MatchedKey {
  std::string name;
  std::string before, after;  // the skeleton's tensor and the file's: "Tensor float32 [64,32]"
};

struct KeyMatch {
  std::vector<std::string> missing;     // names that only the skeleton has
  std::vector<std::string> unexpected;  // names that only the file has
  std::vector<MatchedKey> mismatched;   // names whose shapes differ
  std::vector<MatchedKey> matched;
  // Names of num_batches_tracked that the file lacks, and that load_state_dict() fills: a BatchNorm wrote
  // them only since its version 2 (torch 2.13.0, nn/modules/batchnorm.py).
  std::vector<std::string> filled;
  // The prefixes of one side or both without which most names match: "module.".
  // Both are empty if that would match no more names than now.
  std::string skeleton_prefix, file_prefix;
  size_t matched_without_prefix = 0;
  bool all_matched() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// The skeleton is a state dict, on `meta` or with elements.
// Each list keeps the order of the file that its names come from.
KeyMatch match_keys(const Checkpoint& file, const Checkpoint& skeleton);

}  // namespace qcts
