// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/keys.h"

#include <algorithm>
#include <map>
#include <set>
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
  // Returns 0 if the file does not record it, which torch treats as the oldest version.
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

// The names of weight_norm before it was a parametrization, which load_state_dict() still takes if both are
// there: weight_g and weight_v for parametrizations.weight.original0 and original1 (torch 2.13.0,
// nn/utils/parametrizations.py).
class OldNames {
 public:
  explicit OldNames(const Checkpoint& file) {
    for (const NamedTensor& tensor : file.tensors)
      if (tensor.name.ends_with("_g") || tensor.name.ends_with("_v")) tensors_[tensor.name] = &tensor;
  }

  // Returns the file's tensor that becomes the skeleton's, or nullptr.
  const NamedTensor* find(const std::string& name) {
    constexpr std::string_view kPlace = "parametrizations.", kOriginal = ".original";
    const size_t place = name.rfind(kPlace);
    if (place == std::string::npos || (place > 0 && name[place - 1] != '.')) return nullptr;
    const size_t original = name.rfind(kOriginal);
    if (original == std::string::npos || original + kOriginal.size() + 1 != name.size() ||
        original < place + kPlace.size())
      return nullptr;
    const std::string old =
        name.substr(0, place) + name.substr(place + kPlace.size(), original - place - kPlace.size());
    const auto length = tensors_.find(old + "_g"), direction = tensors_.find(old + "_v");
    if (length == tensors_.end() || direction == tensors_.end()) return nullptr;
    const NamedTensor* found = name.back() == '0'   ? length->second
                               : name.back() == '1' ? direction->second
                                                    : nullptr;
    if (found != nullptr) taken_.insert(found->name);
    return found;
  }
  bool is_taken(const std::string& name) const { return taken_.contains(name); }

 private:
  std::map<std::string_view, const NamedTensor*> tensors_;
  std::set<std::string_view> taken_;
};

// load_state_dict() reads a vector of one element as a scalar, as torch 0.3 stored scalars (torch 2.13.0,
// nn/modules/module.py, _load_from_state_dict).
bool has_shape_for(const NamedTensor& wanted, const NamedTensor& held) {
  return held.shape == wanted.shape || (wanted.shape.empty() && held.shape == std::vector<int64_t>{1});
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
  OldNames old_names(file);
  for (const NamedTensor& tensor : skeleton.tensors) {
    const NamedTensor* other = held.find(tensor);
    const bool is_old = other == nullptr && (other = old_names.find(tensor.name)) != nullptr;
    if (other == nullptr) {
      (is_filled(tensor.name, versions) ? match.filled : match.missing).push_back(tensor.name);
      continue;
    }
    const std::string tied =
        other->name == tensor.name ? "" : (is_old ? ", stored as " : ", tied to ") + other->name;
    (has_shape_for(tensor, *other) ? match.matched : match.mismatched)
        .push_back({tensor.name, tensor_words(tensor), tensor_words(*other) + tied});
  }
  for (const NamedTensor& tensor : file.tensors)
    if (wanted.find(tensor) == nullptr && !old_names.is_taken(tensor.name))
      match.unexpected.push_back(tensor.name);
  if (!match.missing.empty() && !match.unexpected.empty()) find_prefixes(file, skeleton, match);
  return match;
}

}  // namespace qcts
