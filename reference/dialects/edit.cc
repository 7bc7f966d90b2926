// A graph with some tensors replaced. Nodes are copied once each, in the order in which the pickler will
// visit them, so that storages get the numbers that torch.save would give them.
#include "reference/dialects/spell.h"

namespace qcts {
namespace {

class Editor {
 public:
  Editor(const TorchObject& object, const Replacements& replacements) : replacements_(replacements) {
    for (const auto& storage : object.storages) storages_.emplace(storage->key, storage);
  }

  pickle::Ref copy_at(const TensorPlace& place, const pickle::Ref& node) {
    const auto replaced = replacements_.find(place);
    return replaced == replacements_.end() ? copy(node) : speller_.spell(*replaced->second, table_);
  }

  pickle::Ref copy(const pickle::Ref& node) {
    if (!node) return nullptr;
    if (const auto known = copies_.find(node.get()); known != copies_.end()) return known->second;
    auto fresh = std::make_shared<pickle::Node>();
    fresh->kind = node->kind;
    fresh->boolean = node->boolean;
    fresh->integer = node->integer;
    fresh->real = node->real;
    fresh->text = node->text;
    fresh->offset = node->offset;
    if (node->kind == pickle::Kind::persistent)
      fresh->items = {copy_id(node->items.at(0))};
    else
      copy_items(*node, *fresh);
    for (const pickle::Ref& item : node->appended) fresh->appended.push_back(copy(item));
    for (size_t i = 0; i < node->pairs.size(); ++i) {
      pickle::Ref key = copy(node->pairs[i].first);
      fresh->pairs.emplace_back(std::move(key), copy_at({node.get(), i}, node->pairs[i].second));
    }
    fresh->state = copy(node->state);
    return copies_[node.get()] = fresh;
  }

  EditedZip finish(pickle::Ref root) { return {std::move(root), table_.storages()}; }

 private:
  // Of an OrderedDict, which is a call, the items are callable and arguments; its tensors are in its pairs.
  void copy_items(const pickle::Node& node, pickle::Node& fresh) {
    const bool sequence = node.kind == pickle::Kind::list || node.kind == pickle::Kind::tuple;
    for (size_t i = 0; i < node.items.size(); ++i)
      fresh.items.push_back(sequence ? copy_at({&node, i}, node.items[i]) : copy(node.items[i]));
  }

  // ("storage", type, key, location, numel); the legacy format's sixth part is the window of a view
  pickle::Ref copy_id(const pickle::Ref& id) {
    auto fresh = std::make_shared<pickle::Node>(*id);
    if (id->items.size() > 5 && id->items[5]->kind != pickle::Kind::none)
      refuse(RefusalClass::StorageRef, "a view of a storage in the legacy sense has no place in a torch zip",
             id->offset);
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
  std::unordered_map<std::string, std::shared_ptr<const Storage>> storages_;
  std::unordered_map<const pickle::Node*, pickle::Ref> copies_;
  std::unordered_map<const Storage*, pickle::Ref> keys_;
  StorageTable table_;
  TorchaoSpeller speller_;
};

}  // namespace

EditedZip replace_tensors(const TorchObject& object, const Replacements& replacements) {
  Editor editor(object, replacements);
  pickle::Ref root = editor.copy_at({}, object.root);
  return editor.finish(std::move(root));
}

}  // namespace qcts
