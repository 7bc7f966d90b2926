#include <utility>

#include "reference/formats/pickle.h"

namespace qcts::pickle {
namespace {

Ref make(Kind kind) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  return node;
}

}  // namespace

Ref none() { return make(Kind::none); }

Ref boolean(bool value) {
  Ref node = make(Kind::boolean);
  node->boolean = value;
  return node;
}

Ref integer(int64_t value) {
  Ref node = make(Kind::integer);
  node->integer = value;
  return node;
}

Ref real(double value) {
  Ref node = make(Kind::real);
  node->real = value;
  return node;
}

Ref string(std::string value) {
  Ref node = make(Kind::string);
  node->text = std::move(value);
  return node;
}

Ref tuple(std::vector<Ref> items) {
  Ref node = make(Kind::tuple);
  node->items = std::move(items);
  return node;
}

Ref list(std::vector<Ref> items) {
  Ref node = make(Kind::list);
  node->items = std::move(items);
  return node;
}

Ref dict() { return make(Kind::dict); }

Ref global(std::string_view module, std::string_view name) {
  Ref node = make(Kind::global);
  node->text.append(module).append(" ").append(name);
  return node;
}

Ref call(Ref callable, std::vector<Ref> arguments) {
  Ref node = make(Kind::call);
  node->items = {std::move(callable), tuple(std::move(arguments))};
  return node;
}

Ref persistent(Ref id) {
  Ref node = make(Kind::persistent);
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
