// SPDX-License-Identifier: BSD-3-Clause
// Converts attributes back into pickle nodes.
#include <stdexcept>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/encoders/encode.h"

namespace qcts {
namespace {

struct ClassModule {
  std::string_view name, module;
};
// torchao 0.18.0; the last 0.5.0 to 0.17.0
constexpr ClassModule kModules[] = {
    {"MappingType", "torchao.quantization.quant_primitives"},
    {"KernelPreference", "torchao.quantization.quantize_.common.kernel_preference"},
    {"PerRow", "torchao.quantization.granularity"},
    {"PerTensor", "torchao.quantization.granularity"},
    {"PerGroup", "torchao.quantization.granularity"},
    {"PerAxis", "torchao.quantization.granularity"},
    {"PerBlock", "torchao.quantization.granularity"},
    {"QuantizeTensorToInt8Kwargs", "torchao.quantization.quantize_.workflows.int8.int8_tensor"},
    {"QuantizeTensorToFloat8Kwargs", "torchao.quantization.quantize_.workflows.float8.float8_tensor"},
    {"Float8MMConfig", "torchao.float8.inference"},
    {"QuantizeTensorToMXKwargs", "torchao.prototype.mx_formats.mx_tensor"},
    {"ScaleCalculationMode", "torchao.prototype.mx_formats.config"},
    {"QuantizeTensorToNVFP4Kwargs", "torchao.prototype.mx_formats.nvfp4_tensor"},
    {"ZeroPointDomain", "torchao.quantization.quant_primitives"},
};

std::string_view module_of(std::string_view cls) {
  for (const ClassModule& known : kModules)
    if (known.name == cls) return known.module;
  throw std::invalid_argument("unknown module of class " + std::string(cls));
}

}  // namespace

// One call of quantize_ gives all its weights one layout, unless the value says otherwise.
pickle::Ref TorchaoEncoder::object(const Json& value) {
  const std::string module = value.value("_module", ""), type = value.at("_type");
  const Json& data = value.at("_data");
  if (!value.value("_shared", type.ends_with("Layout") || type.ends_with("LayoutType")))
    return new_object(module, type, data);
  pickle::Ref& shared = shared_[type + data.dump()];
  if (!shared) shared = new_object(module, type, data);
  return shared;
}

pickle::Ref TorchaoEncoder::new_object(std::string_view module, std::string_view type, const Json& data) {
  const pickle::Ref cls = pickle::global(module.empty() ? module_of(type) : module, type);
  pickle::Refs arguments;
  for (std::string_view field : named_tuple_fields(type)) arguments.push_back(attribute(data.at(field)));
  const pickle::Ref node = pickle::make_node(pickle::Kind::new_object);
  node->items = {cls, pickle::tuple(arguments)};
  if (!arguments.empty() || data.empty()) return node;
  node->state = pickle::dict();
  for (const auto& [key, value] : data.items()) node->state->pairs.emplace_back(name(key), attribute(value));
  return node;
}

// Enum members are singletons in Python.
pickle::Ref TorchaoEncoder::member(std::string_view type, const std::string& name_of_member) {
  pickle::Ref& node = members_[std::string(type) + "." + name_of_member];
  if (node) return node;
  const std::optional<EnumValue> value = enum_value(type, name_of_member);
  if (!value) throw std::invalid_argument(std::string(type) + " has no member " + name_of_member);
  node = pickle::call(
      pickle::global(module_of(type), type),
      {value->text.empty() ? pickle::integer(value->number) : pickle::string(std::string(value->text))});
  return node;
}

pickle::Ref TorchaoEncoder::attribute(const Json& value) {
  if (value.is_null()) return pickle::none();
  if (value.is_boolean()) return pickle::boolean(value.get<bool>());
  if (value.is_number_integer()) return pickle::integer(value.get<int64_t>());
  if (value.is_number()) return pickle::real(value.get<double>());
  if (value.is_string()) return name(value.get<std::string>());
  const auto items = [&](const Json& list) {
    pickle::Refs nodes;
    for (const Json& item : list) nodes.push_back(attribute(item));
    return nodes;
  };
  if (value.is_array()) return pickle::list(items(value));
  if (!value.contains("_type")) {
    const pickle::Ref dict = pickle::dict();
    for (const auto& [key, item] : value.items()) dict->pairs.emplace_back(name(key), attribute(item));
    return dict;
  }
  const std::string type = value.at("_type");
  const Json& data = value.at("_data");
  if (type == "tuple") return pickle::tuple(items(data));
  if (type == "torch.Size")
    return pickle::call(pickle::global("torch", "Size"), {pickle::tuple(items(data))});
  if (type == "torch.dtype") return pickle::global("torch", data.get<std::string>());
  if (type == "function") {
    const std::string path = data.get<std::string>();
    const size_t dot = path.rfind('.');
    return pickle::global(path.substr(0, dot), path.substr(dot + 1));
  }
  return data.is_string() ? member(type, data.get<std::string>()) : object(value);
}

}  // namespace qcts
