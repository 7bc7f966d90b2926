// SPDX-License-Identifier: BSD-3-Clause
// Replaces tensors in a graph. Nodes are copied once each, in the order in which the pickler will visit them,
// so that storages get the numbers that torch.save would give them.
#include <stdexcept>
#include <unordered_set>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/encoders/encode.h"

namespace qcts {
namespace {

// Converts "linear1.weight" to "linear1."; nullopt for other keys.
std::optional<std::string> module_of_weight(const pickle::Ref& key) {
  constexpr std::string_view kWeight = "weight";
  if (key->kind != pickle::Kind::string || !key->text.ends_with(kWeight)) return std::nullopt;
  std::string module = key->text.substr(0, key->text.size() - kWeight.size());
  if (!module.empty() && module.back() != '.') return std::nullopt;
  return module;
}

class Editor {
 public:
  Editor(const TorchObject& object, const Replacements& replacements, const Replacements& tinyq_layers)
      : replacements_(replacements), tinyq_layers_(tinyq_layers) {
    for (const auto& storage : object.storages) storages_.emplace(storage->key, storage);
  }

  pickle::Ref copy_at(const TensorPlace& place, const pickle::Ref& node) {
    const auto replaced = replacements_.find(place);
    if (replaced == replacements_.end()) return copy(node);
    if (decode_tensor_node(node).wrapper.empty()) return encoder_.encode(*replaced->second, table_);
    return copy_as(*replaced->second, node);
  }

  pickle::Ref copy(const pickle::Ref& node) {
    if (!node) return nullptr;
    if (const auto known = copies_.find(node.get()); known != copies_.end()) return known->second;
    const pickle::Ref fresh = pickle::copy_of(*node);
    fresh->items.clear();
    fresh->pairs.clear();
    if (node->kind == pickle::Kind::persistent)
      fresh->items = {copy_id(node->items.at(0))};
    else
      copy_items(*node, *fresh);
    copy_pairs(node, *fresh);
    fresh->state = copy(node->state);
    return copies_[node.get()] = fresh;
  }

  EditedZip finish(pickle::Ref root) { return {std::move(root), table_.storages()}; }

 private:
  // Puts a tensor into the place of one of another class. What is not of that class stays: a Parameter around
  // it, requires_grad, further attributes, and the other names of the same object.
  pickle::Ref copy_as(const SchemeTensor& tensor, const pickle::Ref& node) {
    if (const auto known = replaced_.find(node.get()); known != replaced_.end()) return known->second;
    pickle::Ref fresh;
    if (const TensorNode parts = decode_tensor_node(node); parts.parameter) {
      fresh = pickle::copy_of(*node);
      pickle::Refs arguments = node->items[1]->items;
      for (size_t i = 0; i < arguments.size(); ++i)
        arguments[i] = i == 0 ? copy_as(tensor, arguments[i]) : copy(arguments[i]);
      fresh->items[0] = copy(node->items[0]);
      fresh->items[1] = pickle::tuple(std::move(arguments));
    } else {
      fresh = encoder_.encode(tensor, table_);
      const pickle::Refs& made = fresh->items[1]->items;  // a function, a class, its arguments and a state
      made[2]->items[7] = copy(parts.wrapper[7]);
      keep_further(parts, parts.state, *made[3]);
    }
    return replaced_[node.get()] = fresh;
  }

  void keep_further(const TensorNode& parts, const pickle::Ref& state, pickle::Node& fresh) {
    if (state->kind == pickle::Kind::tuple)
      for (const pickle::Ref& half : state->items) keep_further(parts, half, fresh);
    if (state->kind != pickle::Kind::dict) return;
    for (const auto& [key, value] : state->pairs)
      if (key->kind == pickle::Kind::string &&
          !is_of_class(split_global(parts.cls).name, std::string_view(key->text)))
        fresh.pairs.emplace_back(copy(key), copy(value));
  }

  void copy_pair(const pickle::Ref& node, size_t slot, pickle::Node& fresh) {
    pickle::Ref key = copy(node->pairs[slot].first);
    fresh.pairs.emplace_back(std::move(key), copy_at({node.get(), slot}, node->pairs[slot].second));
  }

  void copy_pairs(const pickle::Ref& node, pickle::Node& fresh) {
    std::unordered_map<size_t, size_t> biases;  // slot of a weight -> slot of its bias
    std::unordered_set<size_t> moved;
    for (size_t i = 0; i < node->pairs.size(); ++i) {
      if (!tinyq_layers_.contains({node.get(), i})) continue;
      const std::optional<std::string> module = module_of_weight(node->pairs[i].first);
      if (!module) throw std::invalid_argument("a TinyQ layer that is not a dict's *.weight");
      for (size_t j = 0; j < node->pairs.size(); ++j) {
        const pickle::Ref& key = node->pairs[j].first;
        if (key->kind == pickle::Kind::string && key->text == *module + "bias")
          biases[i] = j, moved.insert(j);
      }
    }
    for (size_t i = 0; i < node->pairs.size(); ++i) {
      const auto layer = tinyq_layers_.find({node.get(), i});
      if (layer == tinyq_layers_.end()) {
        if (!moved.contains(i)) copy_pair(node, i, fresh);
        continue;
      }
      if (const auto bias = biases.find(i); bias != biases.end()) copy_pair(node, bias->second, fresh);
      for (auto& [name, part] : tinyq_parts(*layer->second, *module_of_weight(node->pairs[i].first)))
        fresh.pairs.emplace_back(pickle::string(name), tensor_node(part, table_.key_of(part.storage)));
    }
  }

  // An object is a call: its first two items are callable and arguments.
  void copy_items(const pickle::Node& node, pickle::Node& fresh) {
    const bool object = node.kind == pickle::Kind::call || node.kind == pickle::Kind::new_object;
    for (size_t i = 0; i < node.items.size(); ++i)
      fresh.items.push_back(object && i < 2 ? copy(node.items[i]) : copy_at({&node, i}, node.items[i]));
  }

  // ("storage", type, key, location, numel); the legacy format's sixth part is the window of a view
  pickle::Ref copy_id(const pickle::Ref& id) {
    auto fresh = pickle::copy_of(*id);
    if (id->items.size() > 5 && id->items[5]->kind != pickle::Kind::none)
      refuse(RefusalClass::StorageRef, "a torch zip cannot hold a legacy storage view", id->offset);
    fresh->items.resize(5);
    for (size_t i = 0; i < fresh->items.size(); ++i)
      fresh->items[i] = i == 2 ? new_key(id->items[2]) : copy(id->items[i]);
    return fresh;
  }

  pickle::Ref new_key(const pickle::Ref& key) {
    const auto storage = storages_.find(key->text);
    if (storage == storages_.end())
      refuse(RefusalClass::StorageRef, "storage " + key->text + " is not in the archive", key->offset);
    pickle::Ref& node = keys_[storage->second.get()];
    if (!node) node = pickle::string(table_.key_of(storage->second));
    return node;
  }

  const Replacements& replacements_;
  const Replacements& tinyq_layers_;
  std::unordered_map<std::string, std::shared_ptr<const Storage>> storages_;
  std::unordered_map<const pickle::Node*, pickle::Ref> copies_, replaced_;
  std::unordered_map<const Storage*, pickle::Ref> keys_;
  StorageTable table_;
  TorchaoEncoder encoder_;
};

}  // namespace

std::vector<std::pair<std::string, Tensor>> tinyq_parts(const SchemeTensor& layer,
                                                        const std::string& module) {
  std::vector<std::pair<std::string, Tensor>> parts;
  // W8A32LinearLayer.quantize squeezes its scales, and makes the zero points like them.
  const bool squeezed = layer.scheme->name() == "tinyq_w8a32" && layer.n == 1;
  for (const Plane& plane : layer.planes) {
    const bool row_values = plane.name != "int8_weights";
    parts.emplace_back(
        module + plane.name,
        make_tensor(plane.dtype, squeezed && row_values ? std::vector<int64_t>{} : plane.shape, plane.bytes));
  }
  return parts;
}

EditedZip replace_by_tinyq(const TorchObject& object, const Replacements& layers) {
  const Replacements none;
  Editor editor(object, none, layers);
  pickle::Ref root = editor.copy_at({}, object.root);
  return editor.finish(std::move(root));
}

EditedZip replace_tensors(const TorchObject& object, const Replacements& replacements) {
  const Replacements none;
  Editor editor(object, replacements, none);
  pickle::Ref root = editor.copy_at({}, object.root);
  return editor.finish(std::move(root));
}

}  // namespace qcts
