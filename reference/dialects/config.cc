// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/config.h"

#include <algorithm>
#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "reference/dialects/config_recipe.h"
#include "reference/dialects/dialects.h"
#include "reference/formats/refusal.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

bool is_quantized(const NamedTensor& tensor) {
  return tensor.type != "Tensor" && tensor.type != "Parameter" && !tensor.payload.empty();
}

// The parts of a config.json that get_text_config(decoder=True) of transformers 5.24 looks for.
constexpr std::array<const char*, 3> kTextParts = {"decoder", "generator", "text_config"};

const Json* torchaos_in(const Json& part) {
  const auto said = part.is_object() ? part.find("quantization_config") : part.end();
  const bool is_torchaos =
      said != part.end() && said->is_object() && said->value("quant_method", Json("")) == "torchao";
  return is_torchaos ? &*said : nullptr;
}

const Json* torchaos_below(const Json& config, int depth, std::string& path) {
  for (const auto& [key, part] : config.items()) {
    if (!part.is_object() || !names_part_of_model(key)) continue;
    path = key;
    if (const Json* said = torchaos_in(part)) return said;
    std::string below;
    if (depth > 1)
      if (const Json* said = torchaos_below(part, depth - 1, below)) {
        path += "." + below;
        return said;
      }
  }
  path.clear();
  return nullptr;
}

}  // namespace

bool names_module(const std::string& word, const std::string& name) {
  const std::string path = "." + name + ".";
  return path.find("." + word + ".") != std::string::npos;
}

bool names_part_of_model(std::string_view key) {
  constexpr std::string_view kOthers[] = {"decoder", "encoder", "generator", "text_encoder"};
  if (key == "quantization_config" || key == "compression_config") return false;
  return key.ends_with("_config") || std::ranges::find(kOthers, key) != std::end(kOthers);
}

std::optional<TorchAoQuantization> torchao_quantization(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  TorchAoQuantization found;
  const Json* place = torchaos_in(config);
  for (const char* part : kTextParts)
    if (place == nullptr && config.contains(part) && (place = torchaos_in(config[part]))) found.part = part;
  if (place == nullptr) {
    place = torchaos_below(config, 2, found.part);
    found.is_used = false;
  }
  if (place == nullptr) return std::nullopt;
  const Json& said = *place;
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
    refuse(RefusalClass::SubclassSchema, "config.json: " + (found.part.empty() ? "" : found.part + ": ") +
                                             "quant_type is neither a string nor an object with a default");
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
  std::optional<TorchAoQuantization> said;
  try {
    said = torchao_quantization(checkpoint.config);
  } catch (const Refused& refused) {
    contradict("", refused.refusal().detail);
  }
  if (!said) return;
  const std::string says = "config.json says " + said->name + (said->part.empty() ? "" : " in " + said->part);
  size_t quantized = 0;
  for (const NamedTensor& tensor : checkpoint.tensors) {
    if (!is_quantized(tensor)) continue;
    ++quantized;
    for (const std::string& word : said->not_converted)
      if (said->is_used && names_module(word, tensor.name))
        contradict(tensor.name,
                   "config.json does not convert " + word + ", but " + tensor.name + " is " + tensor.type);
    if (!said->is_used) continue;
    if (const std::string what = recipe_contradiction(tensor, *said); !what.empty())
      contradict(tensor.name, says + ", but " + tensor.name + " " + what);
  }
  // A separate finding names torchao's keys without metadata.
  const bool unread =
      std::ranges::any_of(checkpoint.tensors, [](const auto& t) { return t.foreign == "torchao_keys"; });
  if (quantized == 0 && !unread && !options.config_is_a_plan)
    contradict("", says + ", but no tensor is quantized");
}

}  // namespace qcts
