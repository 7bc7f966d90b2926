// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "reference/formats/pickle/pickle.h"
#include "reference/formats/pickle/pool.h"

namespace qcts::pickle {

void destroy(Node* node) {
  NodeSlab* slab = node->own.slab;
  if (slab == nullptr) {
    delete node;
    return;
  }
  node->~Node();
  slab->give_back(1);
}

Ref make_node(Kind kind) {
  Ref node(new Node);
  node->kind = kind;
  return node;
}

Ref copy_of(const Node& node) { return Ref(new Node(node)); }

Ref none() { return make_node(Kind::none); }

Ref boolean(bool value) {
  Ref node = make_node(Kind::boolean);
  node->boolean = value;
  return node;
}

Ref integer(int64_t value) {
  Ref node = make_node(Kind::integer);
  node->integer = value;
  return node;
}

Ref real(double value) {
  Ref node = make_node(Kind::real);
  node->real = value;
  return node;
}

Ref string(std::string_view value) {
  Ref node = make_node(Kind::string);
  node->text = value;
  return node;
}

Ref tuple(Refs items) {
  Ref node = make_node(Kind::tuple);
  node->items = std::move(items);
  return node;
}

Ref list(Refs items) {
  Ref node = make_node(Kind::list);
  node->items = std::move(items);
  return node;
}

Ref dict() { return make_node(Kind::dict); }

Ref global(std::string_view module, std::string_view name) {
  Ref node = make_node(Kind::global);
  node->text = std::string(module).append(" ").append(name);
  return node;
}

Ref call(Ref callable, Refs arguments) {
  Ref node = make_node(Kind::call);
  node->items = {std::move(callable), tuple(std::move(arguments))};
  return node;
}

Ref persistent(Ref id) {
  Ref node = make_node(Kind::persistent);
  node->items = {std::move(id)};
  return node;
}

bool is_global(const Ref& node, std::string_view module, std::string_view name) {
  if (node == nullptr || node->kind != Kind::global) return false;
  const std::string_view text = node->text;
  return text.size() == module.size() + 1 + name.size() && text.starts_with(module) &&
         text[module.size()] == ' ' && text.ends_with(name);
}

bool is_call(const Ref& node, std::string_view module, std::string_view name) {
  return node != nullptr && node->kind == Kind::call && is_global(node->items.at(0), module, name);
}

Ref find(const Ref& mapping, std::string_view key) {
  if (mapping == nullptr) return nullptr;
  for (const auto& [name, value] : mapping->pairs) {
    if (name->kind == Kind::string && name->text == key) return value;
  }
  return nullptr;
}

Ref read(std::span<const std::byte> data, const ReadOptions& options) {
  if (data.size() > options.limits.pickle_bytes) {
    refuse(RefusalClass::LimitExceeded, "data.pkl: the pickle has " + std::to_string(data.size()) + " bytes",
           0);
  }
  uint64_t used = 0;
  Ref root = read_first(data, used, options);
  if (used != data.size()) refuse(RefusalClass::PickleStack, "data.pkl: bytes follow STOP", used);
  return root;
}

}  // namespace qcts::pickle
