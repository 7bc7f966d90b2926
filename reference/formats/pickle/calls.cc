// SPDX-License-Identifier: BSD-3-Clause
#include "reference/formats/pickle/calls.h"

#include <algorithm>
#include <array>

#include "reference/formats/io/utf8.h"

namespace qcts::pickle {
namespace {

std::string dotted(const Ref& global) {
  std::string name = global->text;
  if (const size_t space = name.find(' '); space != std::string::npos) name[space] = '.';
  return name;
}

std::optional<GlobalInfo> role_of_global(const Ref& global) {
  if (global->text.find(' ') == std::string::npos) return std::nullopt;
  return known_global(global->text).value_or(GlobalInfo{Role::library_type});
}

[[noreturn]] void refuse_call(const Ref& callable, const std::string& why, uint64_t offset) {
  refuse(RefusalClass::PickleCall, "data.pkl: call of " + dotted(callable) + ": " + why, offset);
}

[[noreturn]] void refuse_type(const std::string& what, uint64_t offset) {
  refuse(RefusalClass::PickleType, "data.pkl: " + what, offset);
}

// Is this a class defined in a TorchScript archive's code? torchscript/values.cc checks its use. LibTorch's
// pickler calls an enum with its bare value, and sets an object's state to whatever __getstate__ returned.
bool is_script_class(const Ref& node) {
  return node->kind == Kind::global && node->text.starts_with("__torch__");
}

bool is_object(const Ref& node) {
  return node->kind == Kind::call || node->kind == Kind::new_object || node->kind == Kind::persistent;
}

// Names of torch.layout (torch/serialization.py, _get_layout).
bool is_layout_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> kLayouts = {
      "torch.strided",    "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
      "torch.sparse_bsr", "torch.sparse_bsc", "torch._mkldnn",    "torch.jagged"};
  return std::find(kLayouts.begin(), kLayouts.end(), name) != kLayouts.end();
}

bool is_encode_pair(const Refs& args) {
  return args.size() == 2 && args[0]->kind == Kind::string && args[1]->kind == Kind::string &&
         (args[1]->text == "latin1" || args[1]->text == "latin-1") && is_latin1(args[0]->text);
}

bool arguments_fit(const GlobalInfo& info, const Refs& args) {
  const auto kind = [&](size_t i, Kind wanted) { return i < args.size() && args[i]->kind == wanted; };
  switch (info.role) {
    case Role::rebuild:
      return args.size() >= info.min_arguments && args.size() <= info.max_arguments;
    case Role::ordered_dict:
      return args.empty();
    case Role::counter:
      return args.empty() || (args.size() == 1 && kind(0, Kind::dict));
    case Role::parameter:
      return !args.empty() && args.size() <= 2 && is_object(args[0]);
    case Role::size:
      return args.size() == 1 && kind(0, Kind::tuple) &&
             std::all_of(args[0]->items.begin(), args[0]->items.end(),
                         [](const Ref& item) { return item->kind == Kind::integer; });
    case Role::device:
      return kind(0, Kind::string) && (args.size() == 1 || (args.size() == 2 && kind(1, Kind::integer)));
    case Role::layout:
      return args.size() == 1 && kind(0, Kind::string) && is_layout_name(args[0]->text);
    case Role::encode:
      return is_encode_pair(args);
    case Role::bytes:
      return args.empty();
    case Role::tag:
      return !args.empty() && args.size() <= 2 && (kind(0, Kind::list) || kind(0, Kind::dict)) &&
             (args.size() == 1 || kind(1, Kind::string));
    case Role::bytearray:
      return args.empty() || is_encode_pair(args) ||
             (args.size() == 1 && is_call(args[0], "_codecs", "encode"));
    case Role::set:
      return args.empty() || (args.size() == 1 && kind(0, Kind::list));
    case Role::complex:
      return args.size() == 2 && kind(0, Kind::real) && kind(1, Kind::real);
    case Role::library_type:
      return true;
    case Role::constant:
    case Role::storage_type:
    case Role::tensor_type:
      return false;
  }
  return false;
}

// Checks [dimension, min or None, max or None], which torch attaches to the sequence lengths of a jagged
// nested tensor (torch/_dynamo/decorators.py, 2.13).
bool is_dim_range(const Ref& cls, const Ref& state) {
  const auto& parts = state->items;
  return is_global(cls, "torch._dynamo.decorators", "_DimRange") && state->kind == Kind::list &&
         parts.size() == 3 && parts[0]->kind == Kind::integer &&
         std::all_of(parts.begin() + 1, parts.end(),
                     [](const Ref& part) { return part->kind == Kind::integer || part->kind == Kind::none; });
}

// An attribute of this name would hide a method of the OrderedDict that it is set on.
bool is_method_of_a_dict(std::string_view name) {
  constexpr std::array<std::string_view, 12> kMethods = {"clear",   "copy",       "fromkeys",    "get",
                                                         "items",   "keys",       "move_to_end", "pop",
                                                         "popitem", "setdefault", "update",      "values"};
  return name.starts_with("__") || std::find(kMethods.begin(), kMethods.end(), name) != kMethods.end();
}

}  // namespace

std::optional<GlobalInfo> role_of(const Ref& node) {
  if (node == nullptr) return std::nullopt;
  if (node->kind == Kind::global) return role_of_global(node);
  if (node->kind != Kind::call && node->kind != Kind::new_object) return std::nullopt;
  if (node->items.empty() || node->items[0]->kind != Kind::global) return std::nullopt;
  return role_of_global(node->items[0]);
}

void check_reduce(const Ref& callable, const std::optional<GlobalInfo>& role, const Ref& arguments,
                  uint64_t offset) {
  if (callable->kind != Kind::global) {
    refuse(RefusalClass::PickleCall, "data.pkl: call of a value that is not a global", offset);
  }
  if (is_script_class(callable)) return;
  if (arguments->kind != Kind::tuple) refuse_type("the arguments of a call are not a tuple", offset);
  if (!role || !arguments_fit(*role, arguments->items)) {
    refuse_call(callable, "no schema takes it with these arguments", offset);
  }
}

void check_new_object(const Ref& cls, const Ref& arguments, uint64_t offset) {
  if (cls->kind != Kind::global) {
    refuse(RefusalClass::PickleCall, "data.pkl: instance of a value that is not a class", offset);
  }
  if (arguments->kind != Kind::tuple) refuse_type("the arguments of NEWOBJ are not a tuple", offset);
  const auto info = role_of(cls);
  const bool creatable = info && (info->role == Role::library_type || info->role == Role::parameter);
  if (!creatable || !arguments_fit(*info, arguments->items)) {
    refuse_call(cls, "it cannot be instantiated by NEWOBJ", offset);
  }
}

void check_build(const Ref& target, const Ref& state, uint64_t offset) {
  const auto info = role_of(target);
  if (!info || target->kind == Kind::global) refuse_type("BUILD of a value that takes no state", offset);
  if (target->state != nullptr) refuse_type("BUILD twice on one object", offset);
  if (info->role == Role::ordered_dict) {
    if (state->kind != Kind::dict)
      refuse_type("BUILD of an OrderedDict with a state that is not a dict", offset);
    for (const auto& [key, value] : state->pairs)
      if (key->kind != Kind::string || is_method_of_a_dict(key->text))
        refuse_type("BUILD of an OrderedDict replaces a method, or has a key that is not a string", offset);
    return;
  }
  if (info->role != Role::library_type) refuse_type("BUILD of " + dotted(target->items[0]), offset);
  if (is_script_class(target->items[0])) return;
  if (is_dim_range(target->items[0], state)) return;
  if (!known_global(target->items[0]->text)) return;  // what a class that the caller allowed does is its own
  // An object without attributes may still be given None.
  if (state->kind != Kind::dict && state->kind != Kind::tuple && state->kind != Kind::none) {
    refuse_type("the state of " + dotted(target->items[0]) + " is not a dict, tuple or None", offset);
  }
}

void check_append(const Ref& target, uint64_t offset) {
  if (target->kind == Kind::list) return;
  const auto info = target->kind == Kind::global ? std::nullopt : role_of(target);
  if (!info || info->role != Role::library_type) refuse_type("APPEND to a value that is not a list", offset);
}

void check_set_item(const Ref& target, uint64_t offset) {
  if (target->kind == Kind::dict) return;
  const auto info = target->kind == Kind::global ? std::nullopt : role_of(target);
  if (info &&
      (info->role == Role::ordered_dict || info->role == Role::counter || info->role == Role::library_type)) {
    return;
  }
  refuse_type("SETITEM on a value that is not a dict", offset);
}

}  // namespace qcts::pickle
