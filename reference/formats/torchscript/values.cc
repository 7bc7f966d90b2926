// SPDX-License-Identifier: BSD-3-Clause
// Checks what a TorchScript pickle may hold and that it matches the code's classes. Sources in torch 2.13,
// torch/csrc/jit/serialization/: pickler.cpp (pushIValueImpl: which call encodes which value), unpickler.cpp
// (readGlobal: which functions are known), import.cpp (obj_loader: an object takes one value for each
// attribute of its class).
#include <algorithm>
#include <array>
#include <set>
#include <unordered_set>

#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/graph.h"
#include "reference/formats/refusal.h"
#include "reference/formats/torch/storage.h"
#include "reference/formats/torchscript/internal.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

constexpr std::string_view kPickleModule = "torch.jit._pickle";

// A function that builds a typed list, and the list's element type.
struct ListFunction {
  std::string_view name;
  std::string_view element;
};
constexpr ListFunction kListFunctions[] = {{"build_intlist", "int"},
                                           {"build_doublelist", "float"},
                                           {"build_boollist", "bool"},
                                           {"build_tensorlist", "Tensor"}};

// Classes that torch 2.13's libraries register (TORCH_LIBRARY, class_<...>) with a pickled state.
constexpr std::string_view kCustomClasses[] = {
    "__torch__.torch.classes.quantized.LinearPackedParamsBase",
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase",
    "__torch__.torch.classes.quantized.Conv3dPackedParamsBase",
    "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase",
    "__torch__.torch.classes.rnn.CellParamsBase",
    "__torch__.torch.classes.sparse.LinearPackedParamsBase",
    "__torch__.torch.classes.xnnpack.LinearOpContext",
    "__torch__.torch.classes.xnnpack.Conv2dOpContext",
    "__torch__.torch.classes.xnnpack.TransposeConv2dOpContext",
};

std::string dotted(const Ref& global) {
  std::string name = global->text;
  if (const size_t blank = name.find(' '); blank != std::string::npos) name[blank] = '.';
  return name;
}

bool is_script_object(const Ref& node) {
  return node->kind == Kind::new_object && script_class_name(node).starts_with("__torch__");
}

// Splits the arguments of a type at the outer level: "int, List[Tensor]" for Dict[int, List[Tensor]].
std::vector<std::string_view> parts_of(std::string_view inside) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t first = 0;
  for (size_t i = 0; i <= inside.size(); ++i) {
    const char c = i < inside.size() ? inside[i] : ',';
    if (c == '[' || c == '(') ++depth;
    if (c == ']' || c == ')') --depth;
    if (c != ',' || depth != 0) continue;
    std::string_view part = inside.substr(first, i - first);
    while (part.starts_with(' ')) part.remove_prefix(1);
    if (!part.empty() && part != "()") parts.push_back(part);
    first = i + 1;
  }
  return parts;
}

class ValueChecker {
 public:
  ValueChecker(const ScriptClasses& classes, const std::vector<std::string>& allow, const std::string& pickle)
      : classes_(classes), allow_(allow), pickle_(pickle) {}

  void run(const Ref& root) {
    pickle::for_each_node(root, [&](const Ref& node) {
      if (node->kind == Kind::call || node->kind == Kind::new_object) check_known(node);
    });
    pickle::for_each_node(root, [&](const Ref& node) {
      if (node->kind == Kind::call) check_call(node);
      if (node->kind == Kind::new_object) check_object(node);
    });
  }

 private:
  [[noreturn]] void fail(RefusalClass cls, const std::string& what, const Ref& node) const {
    refuse(cls, pickle_ + ": " + what, node->offset);
  }

  bool is_allowed(const std::string& name) const { return std::ranges::find(allow_, name) != allow_.end(); }

  // Checks names before shapes: what TorchScript does not know is a security refusal, whatever else is wrong.
  void check_known(const Ref& node) {
    const Ref& callee = node->items.at(0);
    const std::string name = dotted(callee);
    if (is_allowed(name) || name.starts_with("__torch__")) return;
    if (node->kind == Kind::new_object)
      fail(RefusalClass::PickleGlobal, "object of " + name + ", which TorchScript does not know", node);
    const std::string_view text = callee->text;
    const size_t blank = std::min(text.find(' '), text.size() - 1);
    const auto known = pickle::known_global(text.substr(0, blank), text.substr(blank + 1));
    constexpr std::array kFitting = {pickle::Role::rebuild, pickle::Role::complex, pickle::Role::device,
                                     pickle::Role::ordered_dict};
    const bool fitting = known && std::ranges::find(kFitting, known->role) != kFitting.end();
    if (!fitting && text.substr(0, blank) != kPickleModule)
      fail(RefusalClass::PickleGlobal, "call of " + name + ", which TorchScript does not know", node);
  }

  void check_call(const Ref& node) {
    const Ref& callee = node->items.at(0);
    if (is_allowed(dotted(callee))) return;
    if (callee->text.starts_with("__torch__")) return check_enum(node);
    const std::string_view text = callee->text;
    const size_t blank = text.find(' ');
    if (text.substr(0, blank) == kPickleModule) return check_pickle_function(node, text.substr(blank + 1));
    if (is_call(node, "collections", "OrderedDict") && (!node->pairs.empty() || node->state != nullptr))
      fail(RefusalClass::PickleType, "an OrderedDict is only used for hooks, which TorchScript does not save",
           node);
  }

  void check_enum(const Ref& node) {
    const ScriptClass* cls = script_class_of(classes_, node);
    if (cls == nullptr || cls->base != "Enum")
      fail(RefusalClass::PickleCall,
           "call of " + dotted(node->items[0]) + ", which is not an enum of the code", node);
    const Kind kind = node->items[1]->kind;
    if (kind != Kind::integer && kind != Kind::real && kind != Kind::string)
      fail(RefusalClass::PickleType, "a member of " + cls->name + " is neither a number nor a string", node);
    check_untouched(node);
  }

  // torch.jit._pickle: restore_type_tag(value, type), build_...list(list)
  void check_pickle_function(const Ref& node, std::string_view function) {
    const std::string name = dotted(node->items[0]);
    const Ref& arguments = node->items.at(1);
    const auto bad = [&](const char* why) {
      fail(RefusalClass::PickleCall, "call of " + name + ": " + why, node);
    };
    if (arguments->kind != Kind::tuple) bad("its arguments are not a tuple");
    check_untouched(node);
    if (function == "restore_type_tag") {
      if (arguments->items.size() != 2 || arguments->items[1]->kind != Kind::string)
        bad("it takes a value and its type");
      const Kind kind = arguments->items[0]->kind;
      if (kind != Kind::list && kind != Kind::dict) bad("its value is neither list nor dict");
      return require_fit(arguments->items[1]->text, arguments->items[0], name);
    }
    const auto* list = std::ranges::find(kListFunctions, function, &ListFunction::name);
    if (list == std::end(kListFunctions)) bad("it is not supported");
    if (arguments->items.size() != 1 || arguments->items[0]->kind != Kind::list) bad("it takes a list");
    for (const Ref& item : arguments->items[0]->items) require_fit(list->element, item, name);
  }

  void check_untouched(const Ref& node) const {
    if (node->items.size() > 2 || !node->pairs.empty() || node->state != nullptr)
      fail(RefusalClass::PickleType, "items or a state for what " + dotted(node->items[0]) + " returned",
           node);
  }

  void check_object(const Ref& node) {
    const std::string name = script_class_name(node);
    if (is_allowed(name)) return;
    if (node->items[1]->kind != Kind::tuple || !node->items[1]->items.empty() || node->items.size() > 2 ||
        !node->pairs.empty())
      fail(RefusalClass::PickleCall, "object of " + name + " with arguments or items", node);
    if (node->state == nullptr)
      fail(RefusalClass::SubclassSchema, "object of " + name + " without a state", node);
    const ScriptClass* cls = script_class_of(classes_, node);
    if (cls == nullptr) return;  // a custom class defines its own state
    if (cls->base == "Enum" || cls->base == "NamedTuple" || cls->base.ends_with("Interface"))
      fail(RefusalClass::PickleCall, "object of " + name + ", which is not a class of objects", node);
    if (cls->has_method("__setstate__")) return;
    if (node->state->kind != Kind::dict)
      fail(RefusalClass::PickleType, "the state of " + name + " is not a dict", node->state);
    check_fields(*cls, node);
  }

  void check_fields(const ScriptClass& cls, const Ref& node) {
    for (const ScriptField& field : cls.fields) {
      const Ref value = pickle::find(node->state, field.name);
      if (value == nullptr)
        fail(RefusalClass::SubclassSchema, "object of " + cls.name + " without its attribute " + field.name,
             node);
      require_fit(field.type, value, cls.name + "." + field.name);
    }
    if (node->state->pairs.size() != cls.fields.size())
      fail(RefusalClass::SubclassSchema,
           "object of " + cls.name + " with attributes that its class does not have", node);
    for (const auto* names : {&cls.parameters, &cls.buffers})
      for (const std::string& name : *names) {
        const Ref value = pickle::find(node->state, name);
        if (value == nullptr || (!is_script_tensor(value) && value->kind != Kind::none))
          fail(RefusalClass::SubclassSchema,
               cls.name + "." + name + " is declared as a tensor but is not one", node);
      }
  }

  void require_fit(std::string_view type, const Ref& value, const std::string& where) {
    if (!fits(type, value, 0))
      fail(RefusalClass::PickleType, where + ": the value is not of type " + std::string(type.substr(0, 120)),
           value);
  }

  bool all_fit(std::string_view type, const pickle::Refs& values, int depth) {
    return std::ranges::all_of(values, [&](const Ref& value) { return fits(type, value, depth); });
  }

  // Unknown types accept any value.
  bool fits(std::string_view type, const Ref& tagged, int depth) {
    constexpr int kDeepestType = 64;
    if (depth > kDeepestType) return false;
    if (!fitting_.emplace(tagged.get(), std::string(type)).second) return true;  // already checked
    const Ref& value = untagged(tagged);
    const auto inside = [&](std::string_view name) -> std::optional<std::string_view> {
      if (!type.starts_with(name) || type.size() < name.size() + 2 || type[name.size()] != '[' ||
          !type.ends_with(']'))
        return std::nullopt;
      return type.substr(name.size() + 1, type.size() - name.size() - 2);
    };
    if (type == "Tensor") return is_script_tensor(value) || value->kind == Kind::none;
    if (type == "int") return value->kind == Kind::integer;
    if (type == "bool") return value->kind == Kind::boolean;
    if (type == "float") return value->kind == Kind::real;
    if (type == "str") return value->kind == Kind::string;
    if (type == "NoneType") return value->kind == Kind::none;
    if (type == "complex") return is_call(value, "builtins", "complex");
    if (type == "Device") return is_call(value, "torch", "device");
    if (const auto part = inside("Optional"))
      return value->kind == Kind::none || fits(*part, value, depth + 1);
    if (const auto part = inside("List"))
      return value->kind == Kind::list && all_fit(*part, value->items, depth + 1);
    if (const auto part = inside("Dict")) return fits_dict(parts_of(*part), value, depth + 1);
    if (const auto part = inside("Tuple")) return fits_tuple(parts_of(*part), value, depth + 1);
    if (type.starts_with("__torch__.")) return fits_class(type, value, depth + 1);
    return true;
  }

  bool fits_dict(const std::vector<std::string_view>& parts, const Ref& value, int depth) {
    if (parts.size() != 2 || value->kind != Kind::dict) return false;
    return std::ranges::all_of(value->pairs, [&](const auto& pair) {
      return fits(parts[0], pair.first, depth) && fits(parts[1], pair.second, depth);
    });
  }

  bool fits_tuple(const std::vector<std::string_view>& parts, const Ref& value, int depth) {
    if (value->kind != Kind::tuple || value->items.size() != parts.size()) return false;
    for (size_t i = 0; i < parts.size(); ++i)
      if (!fits(parts[i], value->items[i], depth)) return false;
    return true;
  }

  bool fits_class(std::string_view type, const Ref& value, int depth) {
    if (is_custom_class(type) || is_allowed(std::string(type)))
      return is_script_object(value) || value->kind == Kind::call;
    const auto found = classes_.find(type);
    if (found == classes_.end()) return false;
    const ScriptClass& cls = found->second;
    if (cls.base.ends_with("Interface")) return is_script_object(value);
    if (cls.base == "NamedTuple") {
      std::vector<std::string_view> types;
      for (const ScriptField& field : cls.fields) types.push_back(field.type);
      return fits_tuple(types, value, depth);
    }
    return script_class_of(classes_, value) == &cls;
  }

  const ScriptClasses& classes_;
  const std::vector<std::string>& allow_;
  const std::string& pickle_;
  std::set<std::pair<const pickle::Node*, std::string>> fitting_;
};

}  // namespace

bool is_custom_class(std::string_view name) {
  return std::ranges::find(kCustomClasses, name) != std::end(kCustomClasses);
}

std::string script_class_name(const Ref& node) {
  if (node == nullptr || (node->kind != Kind::new_object && node->kind != Kind::call)) return "";
  return node->items.at(0)->kind == Kind::global ? dotted(node->items[0]) : "";
}

const ScriptClass* script_class_of(const ScriptClasses& classes, const Ref& node) {
  const auto found = classes.find(script_class_name(node));
  return found == classes.end() ? nullptr : &found->second;
}

const Ref& untagged(const Ref& node) {
  if (node->kind != Kind::call || node->items[0]->kind != Kind::global) return node;
  const std::string_view text = node->items[0]->text;
  const Ref& arguments = node->items[1];
  if (!text.starts_with(kPickleModule) || arguments->kind != Kind::tuple || arguments->items.empty())
    return node;
  return arguments->items[0];
}

bool is_script_tensor(const Ref& node) {
  return node->kind == Kind::call && node->items[0]->kind == Kind::global &&
         node->items[0]->text.starts_with("torch._utils _rebuild_");
}

std::vector<std::string> script_globals(const ScriptClasses& classes) {
  std::vector<std::string> names = script_storage_globals();
  for (const auto& [name, cls] : classes) names.push_back(name);
  for (std::string_view name : kCustomClasses) names.emplace_back(name);
  const std::string module = std::string(kPickleModule) + ".";
  names.push_back(module + "restore_type_tag");
  for (const ListFunction& function : kListFunctions) names.push_back(module + std::string(function.name));
  return names;
}

void check_script_values(const Ref& root, const ScriptClasses& classes, const std::vector<std::string>& allow,
                         const std::string& pickle) {
  ValueChecker(classes, allow, pickle).run(root);
}

}  // namespace qcts
