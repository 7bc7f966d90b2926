// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/assign.h"

#include <unordered_map>
#include <unordered_set>

#include "reference/dialects/classes/schema.h"

namespace qcts {

Assignment assign(const Checkpoint& checkpoint, std::span<const SkeletonTensor> skeleton) {
  std::unordered_map<std::string_view, const NamedTensor*> by_name;
  for (const NamedTensor& tensor : checkpoint.tensors) by_name.emplace(tensor.name, &tensor);

  Assignment result;
  std::unordered_set<std::string_view> asked;
  for (const SkeletonTensor& wanted : skeleton) {
    asked.insert(wanted.name);
    const auto found = by_name.find(wanted.name);
    if (found == by_name.end()) {
      result.missing.push_back(wanted.name);
      continue;
    }
    const NamedTensor& tensor = *found->second;
    const bool same_shape = tensor.shape == wanted.shape, same_dtype = tensor.dtype == wanted.dtype;
    if (!same_shape)
      result.mismatched.push_back({wanted.name, "shape", shape_text(wanted.shape), shape_text(tensor.shape)});
    if (!same_dtype)
      result.mismatched.push_back({wanted.name, "dtype", std::string(dtype_name(wanted.dtype)),
                                   std::string(dtype_name(tensor.dtype))});
    if (same_shape && same_dtype) result.assigned.push_back(&tensor);
  }
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (!asked.contains(tensor.name)) result.unexpected.push_back(tensor.name);
  return result;
}

std::vector<SkeletonTensor> skeleton_of(const Checkpoint& checkpoint) {
  std::vector<SkeletonTensor> skeleton;
  skeleton.reserve(checkpoint.tensors.size());
  for (const NamedTensor& tensor : checkpoint.tensors)
    skeleton.push_back({tensor.name, tensor.shape, tensor.dtype});
  return skeleton;
}

}  // namespace qcts
