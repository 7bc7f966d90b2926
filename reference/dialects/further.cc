// SPDX-License-Identifier: BSD-3-Clause
// Further attributes: what tensors and OrderedDicts hold besides what their classes have. Wrappers such as
// torch.nn.Parameter, accelerate and transformers set them; the reader keeps them and says so.
#include <map>
#include <set>

#include "reference/dialects/dialects.h"
#include "reference/formats/pickle/graph.h"

namespace qcts {
namespace {

struct Use {
  std::string first;  // the first tensor with this attribute
  size_t count = 0;
};

// Converts "state.cache.0" to "cache"; returns an empty string for a name of the class.
std::string_view attribute_of(std::string_view name) {
  if (!name.starts_with(kFurther)) return {};
  name.remove_prefix(kFurther.size());
  return name.substr(0, name.find('.'));
}

std::map<std::string, Use, std::less<>> uses_of(const std::vector<NamedTensor>& tensors) {
  std::map<std::string, Use, std::less<>> uses;
  for (const NamedTensor& tensor : tensors) {
    if (tensor.attributes.contains("rebuild")) continue;  // one of torch's own classes, with its own state
    std::set<std::string_view> names;                     // one attribute may have several parts
    for (const InnerTensor& inner : tensor.payload) names.insert(attribute_of(inner.name));
    for (const auto& item : tensor.attributes.items()) names.insert(attribute_of(item.key()));
    names.erase("");
    for (std::string_view name : names) {
      auto use = uses.find(name);
      if (use == uses.end()) use = uses.emplace(name, Use{tensor.name}).first;
      ++use->second.count;
    }
  }
  return uses;
}

// torch.nn.Module.state_dict() sets _metadata itself.
void note_dicts(const pickle::Ref& root, std::vector<std::string>& notes) {
  std::map<std::string, size_t> counts;
  pickle::for_each_holder(root, [&](const pickle::Ref& node) {
    if (!pickle::is_call(node, "collections", "OrderedDict") || node->state == nullptr) return;
    for (const auto& [key, value] : node->state->pairs)
      if (key->text != "_metadata") ++counts[key->text.str()];
  });
  for (const auto& [name, count] : counts)
    notes.push_back((count == 1 ? "an OrderedDict has" : std::to_string(count) + " OrderedDicts have") +
                    std::string(" the further attribute ") + name);
}

}  // namespace

void note_further(Checkpoint& checkpoint) {
  for (const auto& [name, use] : uses_of(checkpoint.tensors))
    checkpoint.warnings.push_back(use.first +
                                  (use.count > 1 ? " and " + std::to_string(use.count - 1) + " more" : "") +
                                  ": the further attribute " + name + " is not a part of the weight");
  for (const auto& zip : checkpoint.zips) note_dicts(zip->root, checkpoint.warnings);
  for (const auto& legacy : checkpoint.legacies) note_dicts(legacy->root, checkpoint.warnings);
}

}  // namespace qcts
