// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/layers.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/pickle/globals.h"
#include "reference/formats/pickle/numpy_arrays.h"

namespace qcts {
namespace {

using pickle::Kind;
using pickle::Ref;

struct Signature {
  std::string_view module, function;
  std::array<std::string_view, 8> arguments;
};
// torch/_utils.py, 2.13
constexpr Signature kSignatures[] = {
    {"torch._utils",
     "_rebuild_wrapper_subclass",
     {"cls", "dtype", "size", "stride", "storage_offset", "layout", "device", "requires_grad"}},
    {"torch._utils",
     "_rebuild_qtensor",
     {"storage", "storage_offset", "size", "stride", "quantizer", "requires_grad", "hooks"}},
    {"torch._utils", "_rebuild_sparse_tensor", {"layout", "data"}},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", {"dtype", "size", "stride", "requires_grad"}},
    {"torch._utils", "_rebuild_nested_tensor", {"buffer", "sizes", "strides", "storage_offsets"}},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", {"data", "dtype", "device", "requires_grad"}},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", {"data", "dtype", "device", "requires_grad"}},
    {"torch._utils", "_rebuild_xla_tensor", {"data", "dtype", "device", "requires_grad"}},
};

bool is_builtin_call(const Ref& node, std::string_view name) {
  return pickle::is_call(node, "builtins", name) || pickle::is_call(node, "__builtin__", name);
}

// The arguments of a call; nullptr if they are not a tuple.
const pickle::Refs* arguments_of(const Ref& node) {
  if (!node || node->kind != Kind::call || node->items.size() < 2 || node->items[1]->kind != Kind::tuple)
    return nullptr;
  return &node->items[1]->items;
}

// An OrderedDict's list of pairs, a Counter's dict.
bool add_arguments(const pickle::Refs& arguments, MappingParts& mapping) {
  if (arguments.empty()) return true;
  if (arguments.size() != 1) return false;
  const Ref& only = arguments[0];
  if (only->kind == Kind::dict) {
    for (const auto& [key, value] : only->pairs) mapping.entries.emplace_back(key, value);
    return true;
  }
  if (only->kind != Kind::list) return false;
  for (const Ref& pair : only->items) {
    if ((pair->kind != Kind::tuple && pair->kind != Kind::list) || pair->items.size() != 2) return false;
    mapping.entries.emplace_back(pair->items[0], pair->items[1]);
  }
  return true;
}

constexpr std::string_view kPlainCalls[] = {"_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3"};

bool is_parameter_call(const Ref& node) {
  return pickle::is_call(node, "torch._utils", "_rebuild_parameter") ||
         pickle::is_call(node, "torch._utils", "_rebuild_parameter_with_state") ||
         pickle::is_call(node, "torch.nn.parameter", "Parameter");
}

bool is_plain_call(const Ref& node) {
  const GlobalName callee = arguments_of(node) ? split_global(node->items[0]) : GlobalName{};
  return callee.module == "torch._utils" &&
         std::ranges::find(kPlainCalls, callee.name) != std::end(kPlainCalls);
}

// "__torch__.net.___torch_mangle_3" -> "__torch__.net": the number counts the classes of one process.
std::string without_mangling(std::string module) {
  constexpr std::string_view kMangled = ".___torch_mangle_";
  for (size_t at = module.find(kMangled); at != std::string::npos; at = module.find(kMangled, at))
    module.erase(at, module.find_first_not_of("0123456789", at + kMangled.size()) - at);
  return module;
}

std::string canonical_module(const Ref& global) {
  const GlobalName name = split_global(global);
  const std::string module(name.module);
  if (module == "__builtin__") return "builtins";
  if (module == "copy_reg") return "copyreg";
  if (module == "numpy.core" || module.starts_with("numpy.core.")) return "numpy._core" + module.substr(10);
  if (module.starts_with("__torch__")) return without_mangling(module);
  const bool torchao = module.starts_with("torchao.") && pickle::known_global(global->text.view());
  return torchao ? "torchao, " + std::string(dialect_of_class(global)) : module;
}

}  // namespace

std::optional<MappingParts> mapping_of(const Ref& node) {
  MappingParts mapping;
  if (node->kind == Kind::dict) {
    mapping.type = "dict";
  } else {
    const bool ordered = pickle::is_call(node, "collections", "OrderedDict");
    const pickle::Refs* arguments = arguments_of(node);
    if (!arguments || (!ordered && !pickle::is_call(node, "collections", "Counter")) ||
        !node->appended().empty() || !add_arguments(*arguments, mapping))
      return std::nullopt;
    mapping.type = ordered ? "OrderedDict" : "Counter";
    mapping.state = node->state;
  }
  for (const auto& [key, value] : node->pairs) mapping.entries.emplace_back(key, value);
  return mapping;
}

std::optional<std::vector<Ref>> members_of(const Ref& node) {
  if (node->kind == Kind::set) return std::vector<Ref>(node->items.begin(), node->items.end());
  const pickle::Refs* arguments = is_builtin_call(node, "set") ? arguments_of(node) : nullptr;
  if (!arguments || arguments->size() > 1) return std::nullopt;
  if (arguments->empty()) return std::vector<Ref>();
  const pickle::Refs& items = (*arguments)[0]->items;
  return std::vector<Ref>(items.begin(), items.end());
}

std::optional<std::string> bytes_value(const Ref& node) {
  if (node->kind == Kind::bytes) return node->text.str();
  if (is_builtin_call(node, "bytes")) return "";
  const pickle::Refs* arguments = pickle::is_call(node, "_codecs", "encode") ? arguments_of(node) : nullptr;
  if (!arguments || arguments->size() != 2 || (*arguments)[0]->kind != Kind::string ||
      (*arguments)[1]->text != "latin1")
    return std::nullopt;
  std::string bytes;
  const std::string_view text = (*arguments)[0]->text;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      bytes += text[i];
    } else if ((lead == 0xc2 || lead == 0xc3) && i + 1 < text.size()) {
      bytes += static_cast<char>((lead & 3) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    } else {
      return std::nullopt;
    }
  }
  return bytes;
}

std::string Layers::kind() const {
  const std::string of = type ? std::string(split_global(type).name) : "Tensor";
  if (!parameter) return of;
  return type ? "Parameter of " + of : "Parameter";
}

bool is_wrapped_tensor(const Ref& node) {
  return is_parameter_call(node) || pickle::is_call(node, "torch._tensor", "_rebuild_from_type_v2") ||
         is_plain_call(node) || device_call(node).has_value();
}

std::optional<DeviceCall> device_call(const Ref& node) {
  const pickle::Refs* arguments = arguments_of(node);
  if (!arguments || arguments->size() != 4) return std::nullopt;
  const GlobalName function = split_global(node->items[0]);
  const bool copy =
      function.module == "torch._utils" && function.name == "_rebuild_device_tensor_from_cpu_tensor";
  if (!copy && !pickle::takes_numpy_array(function.module, function.name)) return std::nullopt;
  DeviceCall call;
  call.function = function.name;
  call.data = (*arguments)[0];
  call.device = device_text((*arguments)[2]);
  call.requires_grad = (*arguments)[3]->boolean;
  return call;
}

Layers layers_of(const Ref& node) {
  Layers layers;
  layers.inner = node;
  for (;;) {
    const pickle::Refs* arguments = arguments_of(layers.inner);
    const std::string function(arguments ? split_global(layers.inner->items[0]).name : std::string_view());
    if (arguments && !arguments->empty() && is_parameter_call(layers.inner)) {
      const auto argument = [&](size_t i) { return i < arguments->size() ? (*arguments)[i] : Ref(); };
      layers.parameter = true;
      layers.requires_grad = argument(1);
      layers.hooks = argument(2);
      if (argument(3)) layers.states.push_back(argument(3));
      layers.functions += function + " ";
      layers.inner = Ref(argument(0));
    } else if (arguments && arguments->size() == 4 && (*arguments)[2]->kind == Kind::tuple &&
               pickle::is_call(layers.inner, "torch._tensor", "_rebuild_from_type_v2")) {
      const Ref type = (*arguments)[1], state = (*arguments)[3];
      if (pickle::is_global(type, "torch.nn.parameter", "Parameter"))
        layers.parameter = true;
      else if (!pickle::is_global(type, "torch", "Tensor"))
        layers.type = type;
      layers.states.push_back(state);
      layers.functions += function + " ";
      layers.inner = pickle::call((*arguments)[0], (*arguments)[2]->items);
    } else {
      return layers;
    }
  }
}

std::optional<PlainCall> plain_call(const Ref& node) {
  if (!is_plain_call(node)) return std::nullopt;
  const pickle::Refs* arguments = arguments_of(node);
  PlainCall call;
  call.function = split_global(node->items[0]).name;
  call.eager = node;
  if (arguments->size() > 4) call.requires_grad = (*arguments)[4]->boolean;
  if (arguments->size() > 5) call.hooks = (*arguments)[5];
  const size_t metadata = call.function == "_rebuild_tensor_v3" ? 7 : 6;
  if (arguments->size() <= metadata) return call;
  for (const auto& [key, value] : (*arguments)[metadata]->pairs)
    (key->text == "conj" ? call.conj : call.neg) = value->boolean;
  call.eager =
      pickle::call(node->items[0],
                   pickle::Refs(arguments->begin(), arguments->begin() + static_cast<ptrdiff_t>(metadata)));
  return call;
}

std::optional<std::string> function_path(const Ref& node) {
  const auto path = [](const Ref& global) {
    const GlobalName name = split_global(global);
    return std::string(name.module) + "." + std::string(name.name);
  };
  if (node->kind == Kind::global) return canonical_function(path(node));
  const pickle::Refs* arguments = is_builtin_call(node, "getattr") ? arguments_of(node) : nullptr;
  if (!arguments || arguments->size() != 2 || (*arguments)[0]->kind != Kind::global ||
      (*arguments)[1]->kind != Kind::string)
    return std::nullopt;
  return canonical_function(path((*arguments)[0]) + "." + (*arguments)[1]->text.str());
}

std::string argument_name(const Ref& callable, size_t index) {
  const GlobalName name = split_global(callable);
  for (const Signature& signature : kSignatures)
    if (signature.module == name.module && signature.function == name.name &&
        index < signature.arguments.size())
      return std::string(signature.arguments[index]);
  return {};
}

SameGlobal same_global(const Ref& a, const Ref& b) {
  if (a->text == b->text) return SameGlobal::yes;
  const bool alike =
      split_global(a).name == split_global(b).name && canonical_module(a) == canonical_module(b);
  return alike ? SameGlobal::by_another_path : SameGlobal::no;
}

}  // namespace qcts
