// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/config.h"

#include <algorithm>
#include <array>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/decoders/decoder.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

// The tensor class that a configuration produces (torchao 0.5 to 0.18, quantization/quant_api.py). `layouts`:
// for an AffineQuantizedTensor, part of its implementation's class name.
struct Makes {
  std::string_view object, text;  // the class, and the string of transformers 4
  std::string_view classes;
  std::string_view layouts;
  bool activations;  // LinearActivationQuantizedTensor around it, act_quant_kwargs in it, or float8 scales
};
constexpr std::array<Makes, 7> kMakes = {{
    {"Int8WeightOnlyConfig", "int8_weight_only", "Int8Tensor", "Plain", false},
    {"Int8DynamicActivationInt8WeightConfig", "int8_dynamic_activation_int8_weight", "Int8Tensor",
     "Plain SemiSparse", true},
    {"Float8WeightOnlyConfig", "float8_weight_only", "Float8Tensor", "Float8", false},
    {"Float8DynamicActivationFloat8WeightConfig", "float8_dynamic_activation_float8_weight", "Float8Tensor",
     "Float8", true},
    {"Int4WeightOnlyConfig", "int4_weight_only",
     "Int4Tensor Int4PlainInt32Tensor Int4TilePackedTo4dTensor Int4PreshuffledTensor Int4OpaqueTensor "
     "Int4MarlinSparseTensor",
     "Int4CPU TensorCoreTiled Plain MarlinSparse Int4XPU", false},
    {"Float8DynamicActivationInt4WeightConfig", "Float8DynamicActivationInt4WeightConfig",
     "Int4Tensor Int4PreshuffledTensor", "", true},
    {"Int8DynamicActivationInt4WeightConfig", "int8_dynamic_activation_int4_weight",
     "IntxUnpackedToInt8Tensor", "Plain MarlinQQQ Int8DynamicActInt4", true},
}};

constexpr std::string_view kWrapper = "LinearActivationQuantizedTensor";

bool holds_word(std::string_view list, std::string_view word) {
  return (" " + std::string(list) + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

const Makes* find_makes(std::string_view name) {
  for (const Makes& makes : kMakes)
    if (makes.object == name || makes.text == name) return &makes;
  return nullptr;
}

bool is_quantized(const NamedTensor& tensor) {
  return tensor.type != "Tensor" && tensor.type != "Parameter" && !tensor.payload.empty();
}

std::string word_at(const NamedTensor& tensor, const std::string& name) {
  const auto value = tensor.attributes.find(name);
  return value != tensor.attributes.end() && value->is_object() ? value->value("_type", "") : "";
}

bool begins_with_one_of(std::string_view list, std::string_view word) {
  for (size_t first = 0; first < list.size();) {
    const size_t end = std::min(list.find(' ', first), list.size());
    if (word.starts_with(list.substr(first, end - first))) return true;
    first = end + 1;
  }
  return false;
}

// Returns how the tensor contradicts the configuration; empty when it agrees.
std::string class_contradiction(const NamedTensor& tensor, const Makes& makes) {
  const bool wrapped = tensor.type == kWrapper;
  const std::string prefix = wrapped ? "original_weight_tensor" : "";
  const std::string cls = wrapped ? word_at(tensor, prefix) : tensor.type;
  const std::string at = wrapped ? prefix + "." : "";
  const auto kwargs = tensor.attributes.find(at + "act_quant_kwargs");
  const bool below_float8 =
      data_name(tensor.attributes.value("activation_dtype", Json())) == "float8_e4m3fn" ||
      any_payload(tensor, {"row_scale"});
  const bool activations = wrapped || below_float8 ||
                           (kwargs != tensor.attributes.end() && !kwargs->is_null()) ||
                           tensor.attributes.contains("activation_quantization");
  if (activations != makes.activations)
    return std::string(activations ? "quantizes" : "does not quantize") + " its activations";
  if (holds_word(makes.classes, cls)) return "";
  if (cls != "AffineQuantizedTensor") return "is " + cls;
  std::string impl = word_at(tensor, at + "tensor_impl");
  if (impl.empty()) impl = word_at(tensor, at + "layout_tensor");
  return begins_with_one_of(makes.layouts, impl) ? "" : "is " + cls + " with " + impl;
}

// Compares the configuration's group_size with the last number of block_size.
std::string group_contradiction(const NamedTensor& tensor, const TorchAoQuantization& said) {
  const auto group = said.arguments.find("group_size");
  auto block = tensor.attributes.find("block_size");
  if (block == tensor.attributes.end()) block = tensor.attributes.find("original_weight_tensor.block_size");
  if (group == said.arguments.end() || !group->is_number_integer() || block == tensor.attributes.end())
    return "";
  const Json& list = block->is_object() && block->contains("_data") ? (*block)["_data"] : *block;
  if (!list.is_array() || list.empty() || list.back() == *group) return "";
  return "has groups of " + list.back().dump() + ", not " + group->dump();
}

// Does a listed name match the tensor's module or a parent of it, as transformers matches?
bool names_module(const std::string& word, const std::string& tensor) {
  const std::string path = "." + tensor + ".";
  return path.find("." + word + ".") != std::string::npos;
}

}  // namespace

std::optional<TorchAoQuantization> torchao_quantization(const Json& config) {
  if (!config.is_object() || !config.contains("quantization_config")) return std::nullopt;
  const Json& said = config["quantization_config"];
  if (!said.is_object() || said.value("quant_method", Json("")) != "torchao") return std::nullopt;
  TorchAoQuantization found;
  const Json type = said.value("quant_type", Json(nullptr));
  if (type.is_string()) {
    found.name = type;
    if (said.contains("quant_type_kwargs")) found.arguments = said["quant_type_kwargs"];
  } else if (type.is_object() && type.contains("default") && type["default"].is_object() &&
             type["default"].contains("_type") && type["default"]["_type"].is_string()) {
    found.name = type["default"]["_type"];
    if (type["default"].contains("_data")) found.arguments = type["default"]["_data"];
  } else {
    refuse(RefusalClass::SubclassSchema,
           "config.json: quant_type is neither a string nor an object with a default");
  }
  if (!found.arguments.is_object()) found.arguments = Json::object();
  const Json listed = said.value("modules_to_not_convert", Json(nullptr));
  if (listed.is_array())
    for (const Json& item : listed)
      if (item.is_string()) found.not_converted.push_back(item);
  return found;
}

std::optional<DType> config_dtype(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  for (const char* key : {"dtype", "torch_dtype"})
    if (config.contains(key) && config[key].is_string())
      return dtype_from_name(config[key].get<std::string>());
  return std::nullopt;
}

void check_config(Checkpoint& checkpoint, const OpenOptions& options) {
  const auto contradict = [&](const std::string& tensor, const std::string& what) {
    if (options.lenient)
      checkpoint.warnings.push_back(what);
    else
      checkpoint.findings.push_back({CheckpointFinding::Kind::contradiction, tensor, what});
  };
  if (const std::optional<DType> dtype = config_dtype(checkpoint.config)) {
    size_t others = 0;
    const NamedTensor* first = nullptr;
    for (const NamedTensor& tensor : checkpoint.tensors)
      if (tensor.foreign.empty() && tensor.dtype != *dtype && ++others == 1) first = &tensor;
    if (first)
      checkpoint.warnings.push_back("config.json names " + std::string(dtype_name(*dtype)) + ", but " +
                                    first->name + " is " + std::string(dtype_name(first->dtype)) +
                                    (others > 1 ? ", as are others" : "") + ": stored dtypes are kept");
  }
  if (checkpoint.config.is_object() && checkpoint.config.value("tie_word_embeddings", Json()) == Json(false))
    for (const std::string& name : checkpoint.left_out)
      contradict(name, "config.json ties no weights, but " + name + " is listed and not stored");
  std::optional<TorchAoQuantization> said;
  try {
    said = torchao_quantization(checkpoint.config);
  } catch (const Refused& refused) {
    contradict("", refused.refusal().detail);
  }
  if (!said) return;
  const Makes* makes = find_makes(said->name);
  size_t quantized = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (!is_quantized(tensor)) continue;
    ++quantized;
    for (const std::string& word : said->not_converted)
      if (names_module(word, tensor.name))
        contradict(tensor.name,
                   "config.json does not convert " + word + ", but " + tensor.name + " is " + tensor.type);
    if (!makes) continue;
    std::string what = class_contradiction(tensor, *makes);
    if (what.empty()) what = group_contradiction(tensor, *said);
    if (!what.empty())
      contradict(tensor.name, "config.json says " + said->name + ", but " + tensor.name + " " + what);
  }
  if (quantized == 0 && !options.config_is_a_plan)
    contradict("", "config.json says " + said->name + ", but no tensor is quantized");
}

}  // namespace qcts
