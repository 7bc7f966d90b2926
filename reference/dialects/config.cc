// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/config.h"

#include "reference/dialects/config_recipe.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

bool is_quantized(const NamedTensor& tensor) {
  return tensor.type != "Tensor" && tensor.type != "Parameter" && !tensor.payload.empty();
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
    const Json version = type["default"].value("_version", Json(1));
    if (version.is_number_integer()) found.version = version;
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
  size_t quantized = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (!is_quantized(tensor)) continue;
    ++quantized;
    for (const std::string& word : said->not_converted)
      if (names_module(word, tensor.name))
        contradict(tensor.name,
                   "config.json does not convert " + word + ", but " + tensor.name + " is " + tensor.type);
    if (const std::string what = recipe_contradiction(tensor, *said); !what.empty())
      contradict(tensor.name, "config.json says " + said->name + ", but " + tensor.name + " " + what);
  }
  if (quantized == 0 && !options.config_is_a_plan)
    contradict("", "config.json says " + said->name + ", but no tensor is quantized");
}

}  // namespace qcts
