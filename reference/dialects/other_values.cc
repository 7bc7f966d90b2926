// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/other_values.h"

#include <cstdio>
#include <map>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

constexpr uint64_t kMaxValues = 1u << 20, kMaxBytes = 1u << 28;

std::string real_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

std::string dotted_name(const Ref& global) {
  const GlobalName name = split_global(global);
  return name.module.empty() ? std::string(name.name)
                             : std::string(name.module) + "." + std::string(name.name);
}

class ValueWalk {
 public:
  void walk(const Ref& node, const std::string& name) {
    if (is_tensor_node(node)) return;
    switch (node->kind) {
      case Kind::none:
        return add(node, name, "None");
      case Kind::boolean:
        return add(node, name, node->boolean ? "True" : "False");
      case Kind::integer:
      case Kind::big_integer:
        return add(node, name, pickle::integer_text(node));
      case Kind::real:
        return add(node, name, real_text(node->real));
      case Kind::string:
      case Kind::bytes:
        return add(node, name, "'" + node->text.str() + "'");
      case Kind::global:
        return add(node, name, dotted_name(node));
      case Kind::dict:
      case Kind::list:
      case Kind::tuple:
      case Kind::set:
        if (node->is_leaf() && !name.empty()) add(node, name, "empty");
        break;
      case Kind::call:
      case Kind::new_object:
        if (!pickle::is_call(node, "collections", "OrderedDict") &&
            split_global(node->items[0]).module != "torch.jit._pickle")
          add(node, name, "object of " + dotted_name(node->items[0]));
        break;
      case Kind::persistent:
        return;
    }
    walk_held(node, name);
  }

  std::vector<OtherValue> take() { return std::move(values_); }

 private:
  void walk_held(const Ref& node, const std::string& name) {
    for_each_held(node, [&](const HeldValue& held) {
      // The _metadata of a state dict.
      if (pickle::is_call(node, "collections", "OrderedDict") && held.place.container == node->state.get() &&
          node->state != nullptr)
        return;
      if (held.unnamed) return walk(*held.value, name);
      const std::string part = held.key == nullptr ? std::to_string(held.index) : key_text(*held.key);
      walk(*held.value, name.empty() ? part : name + "." + part);
    });
  }

  void add(const Ref& node, const std::string& name, std::string text) {
    bytes_ += name.size() + text.size();
    if (values_.size() >= kMaxValues || bytes_ > kMaxBytes)
      refuse(RefusalClass::LimitExceeded, "too many values beside the tensors", node->offset);
    const uint32_t count = ++names_[name];
    values_.push_back({count > 1 ? name + "#" + std::to_string(count) : name, std::move(text)});
  }

  std::vector<OtherValue> values_;
  std::map<std::string, uint32_t> names_;  // sorted: a file can choose names that a hash table holds badly
  uint64_t bytes_ = 0;
};

}  // namespace

std::vector<OtherValue> other_values(const Checkpoint& checkpoint) {
  ValueWalk walk;
  for (const auto& zip : checkpoint.zips) walk.walk(zip->root, "");
  for (const auto& legacy : checkpoint.legacies) walk.walk(legacy->root, "");
  return walk.take();
}

}  // namespace qcts
