// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/convert.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/schema.h"
#include "reference/dialects/dialects.h"

namespace qcts {
namespace {

constexpr std::string_view kWrapped = "LinearActivationQuantizedTensor";

[[noreturn]] void cannot(const std::string& where, const std::string& why) {
  throw std::invalid_argument(where + ": " + why);
}

bool is_tinyq(const NamedTensor& tensor) {
  return tensor.type == "W8A32LinearLayer" || tensor.type == "W8A16LinearLayer";
}

bool is_in_torchaos_safetensors(const NamedTensor& tensor) {
  const ClassSchema* schema = find_class(tensor.type);
  return schema != nullptr && schema->in_safetensors;
}

// torch's own tensors. What they hold besides elements has its own names.
bool is_torchs(const NamedTensor& tensor) { return tensor.type == "Tensor" || tensor.type == "Parameter"; }

// Values among the further attributes are left out, tensors never.
void require_no_further_tensors(const NamedTensor& tensor) {
  for (const InnerTensor& inner : tensor.payload)
    if (inner.name.starts_with(kFurther))
      cannot(tensor.name + "." + inner.name,
             "a tensor among the attributes of a " + tensor.type + ", which safetensors cannot hold");
}

void require_only_elements(const NamedTensor& tensor) {
  if (tensor.attributes.contains("rebuild"))
    cannot(tensor.name, "not a single array of elements (" + tensor.attributes["rebuild"].get<std::string>() +
                            "), which is all that safetensors can hold");
  for (const auto& [key, value] : tensor.attributes.items())
    if (!key.starts_with(kFurther) &&
        key != "device")  // the device that a tensor without storages is moved to
      cannot(tensor.name + "." + key, "an attribute of a " + tensor.type + ", which safetensors cannot hold");
  for (const InnerTensor& inner : tensor.payload)
    if (inner.name != "data")
      cannot(tensor.name + "." + inner.name,
             "a part of a " + tensor.type + ", which safetensors cannot hold");
  if (tensor.payload.size() != 1) cannot(tensor.name, "it has no elements that safetensors could hold");
}

[[noreturn]] void refuse_class(const NamedTensor& tensor, std::string_view dialect) {
  const bool first =
      tensor.type == "AffineQuantizedTensor" || tensor.type == "LinearActivationQuantizedTensor";
  cannot(
      tensor.name,
      "dialect " + std::string(dialect) + " cannot store the class " + tensor.type +
          (first ? "; qcts convert --as torchao_v2 writes its planes in a current class, if one can hold them"
                 : ""));
}

using Entries = std::vector<std::pair<std::string, Tensor>>;

// Adds a tensor that is stored under its own name, or the tensors of a TinyQ layer; false for any other
// class.
bool add_plain(const NamedTensor& tensor, Entries& entries) {
  if (is_tinyq(tensor)) {
    const std::string module = tensor.name.substr(0, tensor.name.size() - std::string_view("weight").size());
    for (const InnerTensor& inner : tensor.payload) entries.emplace_back(module + inner.name, inner.tensor);
    return true;
  }
  if (!is_torchs(tensor)) return false;
  require_only_elements(tensor);
  entries.emplace_back(tensor.name, tensor.payload[0].tensor);
  return true;
}

// The classes and enums of attributes that torchao 0.18.0's object_from_dict makes
// (prototype/safetensors/safetensors_utils.py, ALLOWED_CLASSES).
constexpr std::array<std::string_view, 11> kReadClasses = {"torch.dtype",
                                                           "Float8MMConfig",
                                                           "QuantizeTensorToFloat8Kwargs",
                                                           "QuantizeTensorToInt8Kwargs",
                                                           "QuantizeTensorToMXKwargs",
                                                           "QuantizeTensorToNVFP4Kwargs",
                                                           "PerRow",
                                                           "PerTensor",
                                                           "KernelPreference",
                                                           "MappingType",
                                                           "ScaleCalculationMode"};

// Returns the attribute as torchao's metadata has it: tuples are lists.
Json in_metadata(const Json& value, const std::string& where) {
  if (value.is_array()) {
    Json list = Json::array();
    for (const Json& item : value) list.push_back(in_metadata(item, where));
    return list;
  }
  if (!value.is_object()) return value;
  const std::string type = value.value("_type", "");
  if (type == "tuple") return in_metadata(value["_data"], where);
  if (!type.empty() && std::ranges::find(kReadClasses, type) == kReadClasses.end())
    cannot(where, "a " + type + ", which torchao 0.18.0 does not read from safetensors");
  Json object = Json::object();
  for (const auto& [key, item] : value.items())
    object[key] = in_metadata(item, key == "_data" ? where : where + "." + key);
  return object;
}

Json attributes_in_metadata(const NamedTensor& tensor, const ClassSchema& schema) {
  Json data = Json::object();
  for (const auto& [key, value] : tensor.attributes.items()) {
    if (key.starts_with(kFurther)) continue;
    const bool former = std::ranges::find(schema.former_attributes, key) != schema.former_attributes.end();
    if (former && value.is_null()) continue;
    if (former)
      cannot(tensor.name + "." + key, "an attribute that torchao 0.18.0's " + tensor.type + " does not take");
    data[key] = in_metadata(value, tensor.name + "." + key);
  }
  return data;
}

std::string torchao_prefix(const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) cannot(name, "torchao's safetensors reader needs a name like MODULE.PARAM");
  return name.substr(0, dot) + "._" + name.substr(dot + 1) + "_";
}

// torchao's reader gives a quantized tensor every key with its prefix, in entries and in metadata, and leaves
// the tensor out when there are more of them than its metadata lists.
void require_own_prefixes(const EncodedSafetensors& encoded, const std::map<std::string, size_t>& parts) {
  std::set<std::string_view> keys;
  for (const auto& [key, tensor] : encoded.entries)
    if (!keys.insert(key).second) cannot(key, "two tensors would be written to this entry");
  for (const auto& [key, text] : encoded.metadata) keys.insert(key);
  for (const auto& [prefix, count] : parts) {
    size_t found = 0;
    for (auto key = keys.lower_bound(prefix); key != keys.end() && key->starts_with(prefix); ++key) ++found;
    if (found != count)
      cannot(std::string(*keys.lower_bound(prefix)),
             "torchao's reader takes every name that begins with " + prefix + " for a part of one tensor");
  }
}

EncodedSafetensors encode_today(std::span<const NamedTensor> tensors) {
  EncodedSafetensors encoded;
  Json names = Json::array();
  std::map<std::string, size_t> parts;  // by prefix
  std::set<std::string> listed;
  // The metadata has the names in memory, of which several tensors may be one.
  const auto describe = [&](const NamedTensor& tensor, const std::string& text) {
    const std::vector<std::string> own = {tensor.name};
    for (const std::string& name : tensor.in_memory.empty() ? own : tensor.in_memory) {
      if (!listed.insert(name).second) continue;
      names.push_back(name);
      encoded.metadata.emplace_back(name, text);
    }
  };
  for (const NamedTensor& tensor : tensors) {
    const std::string prefix = torchao_prefix(tensor.name);
    if (!is_tinyq(tensor) && add_plain(tensor, encoded.entries)) {
      describe(tensor, python_json({{"_type", "Tensor"}}));
      continue;
    }
    if (!is_in_torchaos_safetensors(tensor)) refuse_class(tensor, "torchao_safetensors");
    require_no_further_tensors(tensor);
    const ClassSchema& schema = *find_class(tensor.type);
    Json info = Json::object();
    info["_type"] = tensor.type;
    info["_data"] = attributes_in_metadata(tensor, schema);
    info["_tensor_data_names"] = Json::array();
    for (const auto* listed : {&schema.optional_tensors, &schema.tensors})
      for (std::string_view part : *listed)
        if (find_payload(tensor, part)) info["_tensor_data_names"].push_back(part);
    for (const InnerTensor& inner : tensor.payload)
      encoded.entries.emplace_back(prefix + inner.name, inner.tensor);
    parts[prefix] = tensor.payload.size();
    describe(tensor, python_json(info));
  }
  encoded.metadata.emplace_back("tensor_names", python_json(names));
  require_own_prefixes(encoded, parts);
  return encoded;
}

// The script writes json.dumps(quant_kwargs), which has no tuples and no objects.
void require_json(const Json& value, const std::string& where) {
  if (value.is_object() && value.contains("_type"))
    cannot(where,
           "a " + value["_type"].get<std::string>() + ", which the JSON of pytorch/ao#2338 cannot hold");
  for (const auto& [key, item] : value.items())
    if (value.is_structured()) require_json(item, value.is_array() ? where : where + "." + key);
}

// The weight of a LinearActivationQuantizedTensor; nullptr if that is quantized itself.
const Tensor* plain_weight(const NamedTensor& tensor) {
  const std::string name = tensor.payload.size() == 1 ? tensor.payload[0].name : "";
  const bool plain = name == "original_weight" || name == "original_weight_tensor";
  return plain ? &tensor.payload[0].tensor : nullptr;
}

const Tensor& wrapped_weight(const NamedTensor& tensor) {
  if (tensor.type != kWrapped) refuse_class(tensor, "torchao_2338");
  if (const Tensor* weight = plain_weight(tensor)) return *weight;
  cannot(tensor.name, "dialect torchao_2338 cannot store a quantized weight in " + tensor.type);
}

void add_2338(const NamedTensor& tensor, const std::string& prefix, EncodedSafetensors& encoded) {
  const Tensor& weight = wrapped_weight(tensor);
  for (const auto& [key, value] : tensor.attributes.items())
    if (!key.starts_with(kFurther) && key != "input_quant_func" && key != "quant_kwargs" && key != "shape" &&
        key != "dtype")
      cannot(tensor.name + "." + key, "an attribute that torchao_2338 cannot hold");
  const auto function = tensor.attributes.find("input_quant_func");
  if (function == tensor.attributes.end() || !function->is_object() ||
      function->value("_type", "") != "function")
    cannot(tensor.name + ".input_quant_func", "not a function that torchao_2338 can name");
  const Json kwargs = tensor.attributes.value("quant_kwargs", Json::object());
  require_json(kwargs, tensor.name + ".quant_kwargs");
  encoded.entries.emplace_back(prefix + "original_weight", weight);
  encoded.metadata.emplace_back(prefix + "tensor_type", tensor.type);
  encoded.metadata.emplace_back(prefix + "input_quant_func", qualified_function((*function)["_data"]));
  encoded.metadata.emplace_back(prefix + "quant_kwargs", python_json(kwargs));
}

EncodedSafetensors encode_2338(std::span<const NamedTensor> tensors, bool lone) {
  EncodedSafetensors encoded;
  if (std::ranges::none_of(tensors, [](const NamedTensor& tensor) { return tensor.type == kWrapped; }))
    throw std::invalid_argument("torchao_2338 holds at least one " + std::string(kWrapped) +
                                ", and there is none");
  if (lone) {
    add_2338(tensors[0], "", encoded);
    return encoded;
  }
  Json names = Json::array();
  for (const NamedTensor& tensor : tensors) {
    names.push_back(tensor.name);
    if (is_tinyq(tensor) || !add_plain(tensor, encoded.entries)) add_2338(tensor, tensor.name + ":", encoded);
  }
  encoded.metadata.emplace_back("tensor_names", python_json(names));
  require_own_prefixes(encoded, {});
  return encoded;
}

EncodedSafetensors encode_plain(std::span<const NamedTensor> tensors) {
  EncodedSafetensors encoded;
  for (const NamedTensor& tensor : tensors)
    if (!add_plain(tensor, encoded.entries)) refuse_class(tensor, "plain");
  require_own_prefixes(encoded, {});
  encoded.metadata.emplace_back("format", "pt");
  return encoded;
}

}  // namespace

std::string_view safetensors_dialect(std::span<const NamedTensor> tensors) {
  const auto any = [&](auto is) { return std::ranges::any_of(tensors, is); };
  if (any([](const NamedTensor& tensor) { return tensor.type == kWrapped && plain_weight(tensor); }))
    return "torchao_2338";
  const auto has_class = [](const NamedTensor& tensor) {
    return !is_torchs(tensor) && !is_tinyq(tensor) && !tensor.type.ends_with("Storage");
  };
  if (any(has_class)) return "torchao_safetensors";
  return any(is_tinyq) ? "tinyq" : "plain";
}

EncodedSafetensors encode_safetensors(std::span<const NamedTensor> tensors, std::string_view dialect,
                                      bool lone) {
  if (dialect == "torchao_2338") return encode_2338(tensors, lone);
  if (lone) throw std::invalid_argument("a single tensor has no name, which safetensors needs");
  return dialect == "torchao_safetensors" ? encode_today(tensors) : encode_plain(tensors);
}

EditedZip encode_state_dict(std::span<const NamedTensor> tensors, bool lone) {
  StorageTable table;
  TorchaoEncoder encoder;
  pickle::Ref root = pickle::dict();
  for (const NamedTensor& tensor : tensors) {
    Entries plain;
    if (add_plain(tensor, plain)) {
      for (const auto& [name, data] : plain)
        root->pairs.emplace_back(pickle::string(name), tensor_node(data, table.key_of(data.storage)));
      continue;
    }
    pickle::Ref node = encoder.encode(tensor, table);
    if (lone)
      root = std::move(node);
    else
      root->pairs.emplace_back(pickle::string(tensor.name), std::move(node));
  }
  return {root, table.storages()};
}

}  // namespace qcts
