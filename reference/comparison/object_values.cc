// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/object_values.h"

#include <algorithm>
#include <unordered_map>

#include "reference/comparison/layers.h"
#include "reference/comparison/words.h"
#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;
using Part = ObjectValue::Part;

constexpr uint64_t kMaxBytes = 1u << 28;

bool is_sequence(const Ref& node) { return node->kind == Kind::list || node->kind == Kind::tuple; }

// A list or dict that torch's C++ pickler wrapped in a call that names its type.
bool is_tag(const Ref& node) {
  return node->kind == Kind::call && split_global(node->items[0]).module == "torch.jit._pickle";
}

// Does a call with these arguments make one value, such as torch.Size((2, 3)) or getattr(CLASS, NAME)? A file
// can share long arguments between many calls, so only short ones are looked at.
bool are_simple(const Ref& arguments) {
  constexpr size_t kMaxItems = 64;
  const auto is_leaf = [](const Ref& node) { return node->is_leaf(); };
  const auto is_simple = [&](const Ref& node) {
    const bool short_tuple = node->kind == Kind::tuple && node->items.size() <= kMaxItems;
    return node->is_leaf() || (short_tuple && std::ranges::all_of(node->items, is_leaf));
  };
  return arguments->items.size() <= kMaxItems && std::ranges::all_of(arguments->items, is_simple);
}

// Is it an object with parts? A set is one value.
bool has_parts(const Ref& node) {
  if (node->kind == Kind::new_object) return true;
  if (node->kind != Kind::call) return false;
  const GlobalName callee = split_global(node->items[0]);
  if (callee.name == "set" && (callee.module == "builtins" || callee.module == "__builtin__")) return false;
  const bool bare = node->state == nullptr && node->pairs.empty() && node->appended().empty();
  return !bare || !are_simple(node->items[1]);
}

class ObjectValueWalk {
 public:
  explicit ObjectValueWalk(const std::function<void(const ObjectValue&)>& visit) : visit_(visit) {}

  // `is_named`: false for a container that is not part of the paths below it.
  void walk(const Ref& node, bool is_named = true) {
    if (is_wrapped_tensor(node)) return tensor(node);
    if (is_tensor_node(node)) return;  // its parts are listed with the tensors
    if (!node->is_single() && !node->is_leaf()) {
      const auto [first, fresh] = seen_.try_emplace(node.get(), path_);
      if (!fresh) return property("identity", "the object " + first->second);
    }
    if (const auto mapping = mapping_of(node)) {
      walk_mapping(*mapping, is_named);
    } else if (is_sequence(node)) {
      if (is_named) property("type", node->kind == Kind::list ? "list" : "tuple");
      if (is_named && node->items.empty() && !path_.empty()) value(node);
      for (size_t i = 0; i < node->items.size(); ++i) walk_part(node->items[i], index_step(i));
    } else {
      if (!is_tag(node)) value(node);
      if (has_parts(node)) walk_object(node);
    }
  }

 private:
  void walk_mapping(const MappingParts& mapping, bool is_named) {
    if (is_named && mapping.type != "dict") property("type", mapping.type, "dict");
    if (is_named && mapping.entries.empty() && !path_.empty())
      emit({Part::value, path_, "", "empty " + mapping.type, ""});
    for (const auto& [key, value] : mapping.entries) {
      if (key->kind != Kind::string) property("key", value_text(key));
      walk_part(value, key_step(key, path_.empty()));
    }
    if (mapping.state) attributes(mapping.state);
  }

  void walk_object(const Ref& node) {
    for_each_held(node, [&](const HeldValue& held) {
      if (held.unnamed) return walk(*held.value, false);
      walk_part(*held.value,
                held.key != nullptr ? key_step(*held.key, path_.empty()) : index_step(held.index));
    });
  }

  void walk_part(const Ref& node, const std::string& step) {
    const size_t length = path_.size();
    path_ += step;
    walk(node);
    path_.resize(length);
  }

  static std::string index_step(size_t index) { return "[" + std::to_string(index) + "]"; }

  void tensor(const Ref& node) {
    const Layers layers = layers_of(node);
    if (layers.parameter) property("type", "Parameter", "Tensor");
    const std::optional<PlainCall> call = plain_call(layers.inner);
    const bool wrapper = pickle::is_call(layers.inner, "torch._utils", "_rebuild_wrapper_subclass");
    const Ref last = wrapper ? layers.inner->items[1]->items.back() : Ref();
    const std::optional<DeviceCall> moved = device_call(layers.inner);
    const bool grad =
        (layers.parameter && layers.requires_grad && layers.requires_grad->boolean) ||
        (!layers.parameter && ((call && call->requires_grad) || (moved && moved->requires_grad))) ||
        (last && last->boolean);
    if (grad) property("requires_grad", "True");
    if (call && call->conj) property("conj", "True");
    if (call && call->neg) property("neg", "True");
    if (layers.hooks && !layers.hooks->pairs.empty()) property("hooks", value_text(layers.hooks));
    const std::string_view cls = wrapper ? split_global(layers.type).name : std::string_view();
    for (const Ref& state : layers.states) attributes(state, cls);
  }

  // `cls`: the class whose own attributes are listed with its tensors.
  void attributes(const Ref& state, std::string_view cls = {}) {
    if (state->kind == Kind::tuple && !cls.empty()) {  // of a class with __slots__
      for (const Ref& half : state->items)
        if (half->kind == Kind::dict) attributes(half, cls);
      return;
    }
    if (state->kind != Kind::dict) {
      if (state->kind != Kind::none && cls.empty()) property("state", value_text(state));
      return;
    }
    for (const auto& [key, value] : state->pairs)
      if (cls.empty() || !is_of_class(cls, key->text))
        emit({Part::attribute, path_ + key_step(key, path_.empty()), "", value_text(value), ""});
  }

  void value(const Ref& node) { emit({Part::value, path_, "", value_text(node), ""}); }

  void property(const char* field, std::string text, std::string plain = "") {
    emit({Part::property, path_, field, std::move(text), std::move(plain)});
  }

  void emit(const ObjectValue& found) {
    bytes_ += found.path.size() + found.text.size();
    if (bytes_ > kMaxBytes)
      refuse(RefusalClass::LimitExceeded, "the values next to the tensors have paths of more than " +
                                              std::to_string(kMaxBytes) + " bytes");
    visit_(found);
  }

  const std::function<void(const ObjectValue&)>& visit_;
  std::string path_;
  std::unordered_map<const pickle::Node*, std::string> seen_;
  uint64_t bytes_ = 0;
};

}  // namespace

void for_each_object_value(const Ref& root, const std::function<void(const ObjectValue&)>& visit) {
  ObjectValueWalk(visit).walk(root);
}

void for_each_object_value(const Checkpoint& checkpoint,
                           const std::function<void(const ObjectValue&)>& visit) {
  for (const auto& zip : checkpoint.zips) for_each_object_value(zip->root, visit);
  for (const auto& legacy : checkpoint.legacies) for_each_object_value(legacy->root, visit);
}

}  // namespace qcts
