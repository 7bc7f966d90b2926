// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/torchscript.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

bool is_object(const Ref& node) { return node->kind == Kind::new_object; }

// Calls visit(name, value) for the direct children of a value: attributes of an object, items of a container.
template <typename Visit>
void for_each_part(const Ref& tagged, Visit&& visit) {
  const Ref& value = untagged(tagged);
  if (is_script_tensor(value)) return;
  if (is_object(value)) {
    if (value->state != nullptr) for_each_part(value->state, visit);
    return;
  }
  if (value->kind == Kind::dict)
    for (const auto& [key, item] : value->pairs) visit(key_text(key), item);
  if (value->kind == Kind::list || value->kind == Kind::tuple)
    for (size_t i = 0; i < value->items.size(); ++i) visit(std::to_string(i), value->items[i]);
}

std::string joined(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

// Visits every place below the root once; shared parts have several places. Real files have each part in one
// place or a few.
class Places {
 public:
  explicit Places(const Limits& limits) : limits_(limits) {}

  void check(const Ref& root) {
    const uint64_t places = count(root);
    const uint64_t allowed = std::min<uint64_t>(limits_.tensors, 65536 + 256 * counts_.size());
    if (places > allowed)
      refuse(RefusalClass::LimitExceeded,
             "the module has more than " + std::to_string(allowed) + " attributes and items", root->offset);
  }

 private:
  uint64_t count(const Ref& node) {
    if (const auto known = counts_.find(node.get()); known != counts_.end()) return known->second;
    uint64_t places = 1;
    for_each_part(node, [&](const std::string&, const Ref& part) {
      places = std::min<uint64_t>(places + count(part), uint64_t{1} << 40);
    });
    return counts_[node.get()] = places;
  }

  const Limits& limits_;
  std::unordered_map<const pickle::Node*, uint64_t> counts_;
};

Json typed_data(std::string_view type, Json data) { return {{"_type", type}, {"_data", std::move(data)}}; }

Json number_json(double value) {
  if (std::isfinite(value)) return value;
  return typed_data("float", std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
}

Json value_json(const Ref& tagged, const std::string& path) {
  const Ref& value = untagged(tagged);
  if (is_script_tensor(value)) return typed_data("Tensor", path);
  switch (value->kind) {
    case Kind::real:
      return number_json(value->real);
    case Kind::dict: {
      Json object = Json::object();
      for_each_part(value, [&](const std::string& key, const Ref& item) {
        object[key] = value_json(item, joined(path, key));
      });
      return object;
    }
    case Kind::list:
    case Kind::tuple: {
      Json array = Json::array();
      for_each_part(value, [&](const std::string& at, const Ref& item) {
        array.push_back(value_json(item, joined(path, at)));
      });
      return value->kind == Kind::list ? array : typed_data("tuple", std::move(array));
    }
    case Kind::new_object:
      return typed_data(script_class_name(value), value->state ? value_json(value->state, path) : Json());
    case Kind::call: {
      const Ref& arguments = value->items[1];
      if (pickle::is_call(value, "torch", "device"))
        return typed_data("torch.device", arguments->items[0]->text);
      if (arguments->kind != Kind::tuple)
        return typed_data(script_class_name(value), value_json(arguments, path));
      Json array = Json::array();
      for (const Ref& item : arguments->items) array.push_back(value_json(item, path));
      return typed_data(script_class_name(value), std::move(array));
    }
    default:
      return attribute_json(value, path);
  }
}

bool holds(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

class ModuleWalker {
 public:
  explicit ModuleWalker(const TorchScript& script) : script_(script), budget_(script.budget) {}

  std::vector<ScriptModule> modules() {
    list_module("", script_.program.root);
    return std::move(modules_);
  }

  std::vector<NamedTensor> tensors() {
    descend(script_.program, "", script_.program.root);
    const auto& constants = script_.constants.root->items;
    for (size_t i = 0; i < constants.size(); ++i)
      collect(script_.constants, "CONSTANTS.c" + std::to_string(i), constants[i], "Constant");
    return std::move(tensors_);
  }

 private:
  bool is_module(const Ref& node) const {
    const ScriptClass* cls = is_object(node) ? script_class_of(script_.classes, node) : nullptr;
    return cls != nullptr && cls->base == "Module";
  }

  void list_module(const std::string& path, const Ref& node) {
    budget_.take_bytes(path.size());
    ScriptModule module{path, script_class_of(script_.classes, node)};
    const bool by_name = untagged(node->state)->kind == Kind::dict;
    std::vector<std::pair<std::string, Ref>> below;
    for_each_part(node, [&](const std::string& name, const Ref& value) {
      if (is_module(value))
        below.emplace_back(joined(path, name), value);
      else if (by_name && !is_script_tensor(value))
        module.attributes[name] = value_json(value, joined(path, name));
    });
    if (!by_name) module.attributes["__getstate__"] = value_json(node->state, path);
    modules_.push_back(std::move(module));
    for (const auto& [name, child] : below) list_module(name, child);
  }

  void descend(const TorchZip& zip, const std::string& path, const Ref& node) {
    const ScriptClass* cls = is_object(node) ? script_class_of(script_.classes, node) : nullptr;
    if (is_object(node) && node->state != nullptr && is_script_tensor(node->state))
      return collect(zip, joined(path, "__getstate__"), node->state, "Attribute");
    for_each_part(node, [&](const std::string& name, const Ref& value) {
      const char* type = cls != nullptr && holds(cls->parameters, name) ? "Parameter"
                         : cls != nullptr && holds(cls->buffers, name)  ? "Buffer"
                                                                        : "Attribute";
      collect(zip, joined(path, name), value, type);
    });
  }

  void collect(const TorchZip& zip, const std::string& name, const Ref& value, const char* type) {
    // A long name is repeated in every name below it.
    budget_.take_bytes(name.size());
    budget_.take_steps(8);
    if (!is_script_tensor(value)) return descend(zip, name, value);
    const int times = ++names_[name];
    const std::string unique = times > 1 ? name + "#" + std::to_string(times) : name;
    tensors_.push_back(read_plain(zip, {unique, value, {}}, budget_));
    tensors_.back().type = type;
  }

  const TorchScript& script_;
  std::vector<ScriptModule> modules_;
  std::vector<NamedTensor> tensors_;
  std::map<std::string, int> names_;
  ReadBudget budget_;
};

}  // namespace

std::vector<ScriptModule> script_modules(const TorchScript& script, const Limits& limits) {
  Places(limits).check(script.program.root);
  return ModuleWalker(script).modules();
}

std::vector<NamedTensor> script_tensors(const TorchScript& script, const Limits& limits) {
  Places(limits).check(script.program.root);
  Places(limits).check(script.constants.root);
  return ModuleWalker(script).tensors();
}

}  // namespace qcts
