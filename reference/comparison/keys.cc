// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/keys.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "reference/comparison/layers.h"
#include "reference/comparison/ties.h"
#include "reference/comparison/words.h"

namespace qcts {
namespace {

using Names = std::unordered_set<std::string_view>;

std::string tensor_words(const NamedTensor& tensor) {
  return type_words(tensor) + " " + shape_words(tensor.shape);
}

// The versions of modules in the _metadata of pickled state dicts.
class ModuleVersions {
 public:
  explicit ModuleVersions(const Checkpoint& checkpoint) {
    for (const auto& zip : checkpoint.zips) add(zip->root, "", 0);
    for (const auto& legacy : checkpoint.legacies) add(legacy->root, "", 0);
  }
  // Returns 0 if the file does not record it, which torch takes for the oldest version.
  int64_t of(const std::string& module) const {
    const auto found = versions_.find(module);
    return found == versions_.end() ? 0 : found->second;
  }

 private:
  void add(const pickle::Ref& node, const std::string& prefix, int depth) {
    constexpr int kMaxDepth = 4;
    const std::optional<MappingParts> mapping = depth < kMaxDepth ? mapping_of(node) : std::nullopt;
    if (!mapping) return;
    const pickle::Ref metadata = mapping->state ? pickle::find(mapping->state, "_metadata") : nullptr;
    if (const auto modules = metadata ? mapping_of(metadata) : std::nullopt)
      for (const auto& [name, local] : modules->entries) {
        const pickle::Ref version =
            name->kind == pickle::Kind::string ? pickle::find(local, "version") : nullptr;
        if (version && version->kind == pickle::Kind::integer)
          versions_[prefix + name->text.str()] = version->integer;
      }
    for (const auto& [key, value] : mapping->entries)
      if (key->kind == pickle::Kind::string && !is_wrapped_tensor(value))
        add(value, prefix + key->text.str() + ".", depth + 1);
  }

  std::map<std::string, int64_t> versions_;
};

bool is_filled(const std::string& name, const ModuleVersions& versions) {
  constexpr std::string_view kTracked = "num_batches_tracked";
  constexpr int64_t kStoresIt = 2;  // _NormBase._version
  if (name != kTracked && !name.ends_with("." + std::string(kTracked))) return false;
  const size_t module = name.size() - kTracked.size();
  return versions.of(name.substr(0, module == 0 ? 0 : module - 1)) < kStoresIt;
}

Names names_of(const Checkpoint& checkpoint) {
  Names names;
  for (const NamedTensor& tensor : checkpoint.tensors) names.insert(tensor.name);
  return names;
}

// Returns "" and the commonest beginnings of names, each up to the first or the second dot.
std::vector<std::string> beginnings(const Checkpoint& checkpoint) {
  constexpr size_t kTried = 4;
  std::map<std::string_view, size_t> counts;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    const std::string_view name = tensor.name;
    size_t dot = name.find('.');
    for (int depth = 0; depth < 2 && dot != name.npos; ++depth, dot = name.find('.', dot + 1))
      ++counts[name.substr(0, dot + 1)];
  }
  std::vector<std::pair<size_t, std::string_view>> sorted;
  for (const auto& [prefix, count] : counts) sorted.emplace_back(count, prefix);
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& pair) { return pair.first; });
  std::vector<std::string> found = {""};
  for (size_t i = 0; i < std::min(kTried, sorted.size()); ++i) found.emplace_back(sorted[i].second);
  return found;
}

size_t matches_without(const Names& skeleton, const std::string& skeleton_prefix, const Names& file,
                       const std::string& file_prefix) {
  size_t count = 0;
  for (std::string_view name : skeleton)
    if (name.starts_with(skeleton_prefix))
      count += file.contains(file_prefix + std::string(name.substr(skeleton_prefix.size())));
  return count;
}

void find_prefixes(const Checkpoint& file, const Checkpoint& skeleton, KeyMatch& match) {
  const Names held = names_of(file), wanted = names_of(skeleton);
  size_t most = match.matched.size() + match.mismatched.size();
  for (const std::string& before : beginnings(skeleton))
    for (const std::string& after : beginnings(file)) {
      if (before == after) continue;
      const size_t count = matches_without(wanted, before, held, after);
      if (count <= most) continue;
      most = count;
      match.skeleton_prefix = before;
      match.file_prefix = after;
      match.matched_without_prefix = count;
    }
}

}  // namespace

std::string type_words(const NamedTensor& tensor) {
  std::string words = tensor.type;
  if (!tensor.scheme.empty()) words += " " + tensor.scheme;
  if (tensor.activation != kWeightOnly) words += " " + std::string(tensor.activation.name());
  return words + " " + std::string(dtype_name(tensor.dtype));
}

KeyMatch match_keys(const Checkpoint& file, const Checkpoint& skeleton) {
  KeyMatch match;
  const TensorsByName held(file, skeleton), wanted(skeleton, file);
  const ModuleVersions versions(file);
  for (const NamedTensor& tensor : skeleton.tensors) {
    const NamedTensor* other = held.find(tensor);
    if (other == nullptr) {
      (is_filled(tensor.name, versions) ? match.filled : match.missing).push_back(tensor.name);
      continue;
    }
    const std::string tied = other->name == tensor.name ? "" : ", tied to " + other->name;
    (other->shape == tensor.shape ? match.matched : match.mismatched)
        .push_back({tensor.name, tensor_words(tensor), tensor_words(*other) + tied});
  }
  for (const NamedTensor& tensor : file.tensors)
    if (wanted.find(tensor) == nullptr) match.unexpected.push_back(tensor.name);
  if (!match.missing.empty() && !match.unexpected.empty()) find_prefixes(file, skeleton, match);
  return match;
}

}  // namespace qcts
