// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/strict.h"

#include <set>
#include <string>

#include "reference/formats/pickle/graph.h"
#include "suites/base/run_error.h"

namespace qcts::cli {
namespace {

// Adds "cache" for "state.cache.0", and nothing for a name of the class.
void add_further_name(std::string_view part, std::set<std::string>& names) {
  if (!part.starts_with(kFurther)) return;
  part.remove_prefix(kFurther.size());
  names.emplace(part.substr(0, part.find('.')));
}

std::set<std::string> further_names(const NamedTensor& tensor) {
  std::set<std::string> names;
  if (tensor.attributes.contains("rebuild")) return names;  // one of torch's own classes
  for (const InnerTensor& inner : tensor.payload) add_further_name(inner.name, names);
  for (const auto& item : tensor.attributes.items()) add_further_name(item.key(), names);
  return names;
}

// torch.nn.Module.state_dict() sets _metadata itself.
void add_names_of_dicts(const pickle::Ref& root, std::set<std::string>& names) {
  pickle::for_each_holder(root, [&](const pickle::Ref& node) {
    if (!pickle::is_call(node, "collections", "OrderedDict") || node->state == nullptr) return;
    for (const auto& [key, value] : node->state->pairs)
      if (key->text != "_metadata") names.insert("an OrderedDict." + key->text.str());
  });
}

}  // namespace

void add_strict(CLI::App& command, bool& strict) {
  command.add_flag("--strict", strict, "refuse attributes that no class has (default: note them)");
}

void require_no_further(const Checkpoint& checkpoint) {
  std::string places;
  const auto add = [&](const std::string& place) { places += (places.empty() ? "" : ", ") + place; };
  for (const NamedTensor& tensor : checkpoint.tensors)
    for (const std::string& name : further_names(tensor)) add(tensor.name + "." + name);
  std::set<std::string> of_dicts;
  for (const auto& zip : checkpoint.zips) add_names_of_dicts(zip->root, of_dicts);
  for (const auto& legacy : checkpoint.legacies) add_names_of_dicts(legacy->root, of_dicts);
  for (const std::string& name : of_dicts) add(name);
  if (!places.empty())
    throw Failure(checkpoint.path.string() +
                  ": --strict does not accept attributes that no class has: " + places);
}

}  // namespace qcts::cli
