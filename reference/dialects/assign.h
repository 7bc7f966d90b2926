// SPDX-License-Identifier: BSD-3-Clause
// Assigns a checkpoint to a skeleton, as load_state_dict(..., assign=True) does with a model on the meta
// device: a list of names, shapes and dtypes takes over the checkpoint's tensors. Nothing is copied or
// dequantized; an assigned tensor views its file's mapping.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct SkeletonTensor {
  std::string name;
  std::vector<int64_t> shape;  // as the model declares it, before quantization
  DType dtype = DType::float32;
};

struct AssignMismatch {
  std::string name;
  std::string what;       // "shape" or "dtype"
  std::string want, got;  // skeleton's and checkpoint's: "[64, 32]", "bfloat16"
};

struct Assignment {
  std::vector<const NamedTensor*> assigned;  // in skeleton order; owned by the checkpoint
  std::vector<std::string> missing;          // in the skeleton, not in the checkpoint
  std::vector<std::string> unexpected;       // in the checkpoint, not in the skeleton
  std::vector<AssignMismatch> mismatched;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// Assigns the checkpoint. Names in the skeleton must be unique. A tensor whose shape or dtype differs is
// mismatched and not assigned.
Assignment assign(const Checkpoint& checkpoint, std::span<const SkeletonTensor> skeleton);

// Returns the skeleton that the checkpoint fits: its own names, logical shapes and dtypes.
std::vector<SkeletonTensor> skeleton_of(const Checkpoint& checkpoint);

}  // namespace qcts
