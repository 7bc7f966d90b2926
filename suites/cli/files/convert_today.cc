// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/files/convert_today.h"

#include <algorithm>
#include <unordered_map>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/refusal.h"
#include "suites/base/run_error.h"
#include "suites/cli/commands.h"
#include "suites/cli/files/file_command.h"

namespace qcts::cli {
namespace {

constexpr const char* kValuesRemain =
    "Only the values can be kept: use qcts dequantize, then qcts quantize with a current scheme";

// Is the class one of today, with the names that its parts have today? A class that is not known here is
// kept.
bool is_todays(const NamedTensor& tensor) {
  if (is_plain(tensor)) return true;
  const ClassSchema* named = find_class(tensor.type);
  const bool is_known = !is_of_class(tensor.type, "");
  return named ? find_class(tensor) == named : !is_known;
}

// Tiles have the same bytes in both generations but for the scales of padding, which follow the minimum scale
// of each.
void take_todays_layout(SchemeTensor& tensor) {
  const std::optional<Layout> tiles = tensor.scheme->find_layout("tile_packed_4d");
  if (tensor.layout != "tile_packed_4d_v1" || !tiles) return;
  const WeightShape shape = {tensor.dtype, tensor.n, tensor.k};
  tensor.planes =
      tensor.scheme->pack(tensor.scheme->unpack(tensor.planes, shape, tensor.layout), shape, *tiles);
  tensor.layout = *tiles;
}

// The tensors that no class of today holds, by the reason.
class Unheld {
 public:
  void add(const NamedTensor& tensor, const std::string& why) {
    const auto found = std::ranges::find(reasons_, why, &Reason::why);
    Reason& reason = found == reasons_.end() ? reasons_.emplace_back(Reason{why, {}}) : *found;
    reason.names.push_back(tensor.name);
  }
  void require_none() const {
    if (reasons_.empty()) return;
    std::string text;
    for (const auto& [why, names] : reasons_) {
      text += text.empty() ? "" : "; ";
      for (size_t i = 0; i < names.size(); ++i) text += (i ? ", " : "") + names[i];
      text += ": " + why;
    }
    throw Failure(text + ". " + kValuesRemain);
  }

 private:
  struct Reason {
    std::string why;
    std::vector<std::string> names;
  };
  std::vector<Reason> reasons_;
};

// Adds the tensor's planes to `today`, or the tensor to `unheld`. Returns the new tensor.
const SchemeTensor* make_today(const NamedTensor& tensor, bool safetensors, TodaysTensors& today,
                               Unheld& unheld) {
  std::optional<SchemeTensor> found;
  try {
    found = scheme_tensor(tensor);
  } catch (const Refused& refused) {
    std::string why = refused.refusal().detail;
    if (why.starts_with(tensor.name + ": ")) why.erase(0, tensor.name.size() + 2);
    unheld.add(tensor, why);
    return nullptr;
  }
  if (!found) {
    unheld.add(tensor, "no torchao 0.18.0 class holds the planes of this " + tensor.type);
    return nullptr;
  }
  take_todays_layout(*found);
  found->dialect = kTodaysClasses;
  const TorchaoClass* cls = torchao_class(*found->scheme, found->layout, found->activation, kTodaysClasses);
  if (!cls)
    unheld.add(tensor, "torchao 0.18.0 has no class for " + std::string(found->scheme->name()) +
                           " in the layout '" + std::string(found->layout.name()) + "' under the policy '" +
                           std::string(found->activation.name()) + "'");
  else if (safetensors && !cls->in_safetensors)
    throw Failure(tensor.name + ": torchao cannot write " + std::string(cls->name) +
                  " to safetensors: use .pt");
  if (!cls) return nullptr;
  return &today.made.emplace_back(*std::move(found));
}

// Finds a class of torchao's first generation that the tensors of a state dict do not explain.
void require_no_former_class(const pickle::Ref& root) {
  const auto look = [](const pickle::Ref& node) {
    if (node && node->kind == pickle::Kind::global && dialect_of_class(node) == "torchao_v1")
      throw Failure("a " + std::string(split_global(node).name) +
                    " is a part of another object, and torchao 0.18.0 has no such class. " + kValuesRemain);
  };
  pickle::for_each_holder(root, [&](const pickle::Ref& node) {
    for (const pickle::Ref& item : node->items) look(item);
    for (const auto& [key, value] : node->pairs) look(value);
  });
}

}  // namespace

bool holds_first_generation(const Checkpoint& checkpoint) {
  return !std::ranges::all_of(checkpoint.tensors, is_todays);
}

TodaysTensors todays_tensors(const Checkpoint& checkpoint, bool safetensors) {
  TodaysTensors today;
  Unheld unheld;
  for (const NamedTensor& tensor : checkpoint.tensors)
    today.by_index.push_back(is_todays(tensor) ? nullptr : make_today(tensor, safetensors, today, unheld));
  unheld.require_none();
  return today;
}

EditedZip with_todays_tensors(const Checkpoint& checkpoint, const TorchObject& object,
                              const TodaysTensors& today, const Limits& limits) {
  std::unordered_map<std::string_view, const SchemeTensor*> by_name;
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i)
    if (today.by_index[i]) by_name.emplace(checkpoint.tensors[i].name, today.by_index[i]);
  Replacements places;
  for (const TensorLeaf& leaf : tensor_leaves(object.root, limits)) {
    const pickle::Ref cls = decode_tensor_node(leaf.node).cls;
    if (const auto found = by_name.find(leaf.name); found != by_name.end())
      places.emplace(leaf.place, found->second);
    else if (cls && dialect_of_class(cls) == "torchao_v1")
      throw Failure(leaf.name + ": no torchao 0.18.0 class holds the planes of this " +
                    std::string(split_global(cls).name) + ". " + kValuesRemain);
  }
  EditedZip edited = replace_tensors(object, places);
  require_no_former_class(edited.root);
  return edited;
}

std::vector<NamedTensor> read_today(const Checkpoint& checkpoint, const TodaysTensors& today,
                                    const OpenOptions& options) {
  StorageTable table;
  TorchaoEncoder encoder;
  TorchObject object;
  object.root = pickle::dict();
  for (size_t i = 0; i < checkpoint.tensors.size(); ++i)
    if (today.by_index[i])
      object.root->pairs.emplace_back(pickle::string(checkpoint.tensors[i].name),
                                      encoder.encode(*today.by_index[i], table));
  object.storages = table.storages();
  object.storage_dtypes.resize(object.storages.size());
  for (size_t i = 0; i < object.storages.size(); ++i) object.storage_index.emplace(std::to_string(i), i);
  Checkpoint made;
  ReadBudget unlimited(UINT64_C(1) << 40, UINT64_C(1) << 40);
  OpenOptions plain = options;
  plain.dialect.clear();
  fill_from_object(made, object, plain, unlimited);
  std::vector<NamedTensor> tensors = checkpoint.tensors;
  for (size_t i = 0, next = 0; i < tensors.size(); ++i) {
    if (!today.by_index[i]) continue;
    const NamedTensor before = std::move(tensors[i]);
    tensors[i] = std::move(made.tensors.at(next++));
    for (const InnerTensor& part : before.payload)
      if (part.name.starts_with(kFurther)) tensors[i].payload.push_back(part);
    for (const auto& [name, value] : before.attributes.items())
      if (name.starts_with(kFurther)) tensors[i].attributes[name] = value;
  }
  return tensors;
}

}  // namespace qcts::cli
