// SPDX-License-Identifier: BSD-3-Clause
// Assigns a checkpoint to a skeleton, as load_state_dict(..., assign=True) does with a model on device meta.
// The skeleton is a list of names, shapes and dtypes, and takes over the checkpoint's tensors.
// Nothing is copied or dequantized; an assigned tensor views the mapping of its file.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct SkeletonTensor {
  std::string name;
  std::vector<int64_t> shape;  // shape that the model declares, before quantization
  DType dtype = DType::float32;
};

struct AssignMismatch {
  std::string name;
  std::string what;       // "shape" or "dtype"
  std::string want, got;  // values in the skeleton and in the checkpoint: "[64, 32]", "bfloat16"
};

struct Assignment {
  std::vector<const NamedTensor*> assigned;  // in the skeleton's order; owned by the checkpoint
  std::vector<std::string> missing;          // names in the skeleton that the checkpoint lacks
  std::vector<std::string> unexpected;       // names in the checkpoint that the skeleton lacks
  std::vector<AssignMismatch> mismatched;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// Assigns the checkpoint. Names in the skeleton must be unique.
// A tensor whose shape or dtype differs counts as mismatched and is not assigned.
Assignment assign(const Checkpoint& checkpoint, std::span<const SkeletonTensor> skeleton);

// Returns the skeleton that the checkpoint fits.
// The skeleton has the checkpoint's own names, logical shapes and dtypes.
std::vector<SkeletonTensor> skeleton_of(const Checkpoint& checkpoint);

}  // namespace qcts
