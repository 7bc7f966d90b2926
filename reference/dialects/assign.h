// SPDX-License-Identifier: BSD-3-Clause
// What load_state_dict(..., assign=True) on a meta-device model does: a skeleton of names, shapes and dtypes
// takes over the tensors of a checkpoint. Nothing is copied and no float weight is ever made: an assigned
// tensor views the mapping of its file.
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
  std::string want, got;  // of the skeleton, of the checkpoint: "[64, 32]", "bfloat16"
};

struct Assignment {
  std::vector<const NamedTensor*> assigned;  // skeleton order; they belong to the checkpoint
  std::vector<std::string> missing;          // the skeleton asks, the checkpoint has none
  std::vector<std::string> unexpected;       // the checkpoint has it, the skeleton does not ask
  std::vector<AssignMismatch> mismatched;

  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// Names of the skeleton are unique. A tensor whose shape or dtype differs is mismatched and not assigned.
Assignment assign(const Checkpoint& checkpoint, std::span<const SkeletonTensor> skeleton);

// The skeleton that the checkpoint fits: its own names, logical shapes and dtypes.
std::vector<SkeletonTensor> skeleton_of(const Checkpoint& checkpoint);

}  // namespace qcts
