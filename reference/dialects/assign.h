// A checkpoint into a skeleton: names, shapes and dtypes of a model that has not been allocated (torch's
// load_state_dict(assign=True) on a meta model). Nothing is copied: the tensors handed over are views of the
// mapping, and no float weight ever exists.
#pragma once

#include <string>
#include <vector>

#include "reference/dialects/checkpoint.h"

namespace qcts {

struct SkeletonEntry {
  std::string name;
  std::vector<int64_t> shape;    // as the model sees it: [out, in] of a quantized weight
  DType dtype = DType::float32;  // logical
};
using Skeleton = std::vector<SkeletonEntry>;

Skeleton skeleton_of(const Checkpoint& checkpoint);

struct MismatchedKey {
  std::string name;
  std::string want, got;  // "bfloat16 [32, 64]" of the skeleton, and of the checkpoint
};

struct Assignment {
  std::vector<std::string> missing;     // in the skeleton alone, in its order
  std::vector<std::string> unexpected;  // in the checkpoint alone, in its order
  std::vector<MismatchedKey> mismatched;
  // One an assigned entry, in the skeleton's order; pointers into the checkpoint.
  std::vector<const NamedTensor*> tensors;
  bool complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
};

// strict: all or nothing, `tensors` is empty unless complete(). Otherwise what fits is assigned and the rest
// is listed. Throws std::invalid_argument when the skeleton has one name twice.
Assignment assign(const Checkpoint& checkpoint, const Skeleton& skeleton, bool strict = true);

}  // namespace qcts
