#include "reference/dialects/assign.h"

#include <stdexcept>
#include <unordered_map>
#include <unordered_set>

#include "reference/dialects/schema.h"

namespace qcts {
namespace {

std::string spelt(DType dtype, const std::vector<int64_t>& shape) {
  return std::string(dtype_name(dtype)) + " " + shape_text(shape);
}

}  // namespace

Skeleton skeleton_of(const Checkpoint& checkpoint) {
  Skeleton skeleton;
  for (const NamedTensor& tensor : checkpoint.tensors)
    skeleton.push_back({tensor.name, tensor.shape, tensor.dtype});
  return skeleton;
}

Assignment assign(const Checkpoint& checkpoint, const Skeleton& skeleton, bool strict) {
  std::unordered_map<std::string_view, const NamedTensor*> held;
  for (const NamedTensor& tensor : checkpoint.tensors) held.emplace(tensor.name, &tensor);
  std::unordered_set<std::string_view> wanted;
  Assignment result;
  for (const SkeletonEntry& entry : skeleton) {
    if (!wanted.insert(entry.name).second)
      throw std::invalid_argument("the skeleton names " + entry.name + " twice");
    const auto found = held.find(entry.name);
    if (found == held.end()) {
      result.missing.push_back(entry.name);
    } else if (found->second->shape != entry.shape || found->second->dtype != entry.dtype) {
      result.mismatched.push_back(
          {entry.name, spelt(entry.dtype, entry.shape), spelt(found->second->dtype, found->second->shape)});
    } else {
      result.tensors.push_back(found->second);
    }
  }
  for (const NamedTensor& tensor : checkpoint.tensors)
    if (!wanted.contains(tensor.name)) result.unexpected.push_back(tensor.name);
  if (strict && !result.complete()) result.tensors.clear();
  return result;
}

}  // namespace qcts
