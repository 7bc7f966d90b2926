// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/encoders/quantize_decision.h"

#include <algorithm>

#include <fnmatch.h>

#include "reference/dialects/dense.h"
#include "reference/dialects/encoders/encoder.h"
#include "reference/dialects/encoders/linear_layers.h"

namespace qcts {
namespace {

std::string last_word(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool matches(const std::string& glob, const std::string& name) {
  const std::string module = module_path(name);
  for (const std::string& text : {name, last_word(name), module, last_word(module)})
    if (!text.empty() && fnmatch(glob.c_str(), text.c_str(), 0) == 0) return true;
  return false;
}

bool matches_any(const std::vector<std::string>& globs, const std::string& name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return matches(glob, name); });
}

bool is_weight_dtype(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float16 || dtype == DType::bfloat16;
}

std::string quantized_as(const NamedTensor& tensor) {
  return tensor.foreign.empty() ? tensor.type : std::string(tensor.foreign);
}

// Quantizing would lose what such a tensor says besides its elements.
std::string device_or_mesh(const NamedTensor& tensor) {
  if (tensor.type == "DTensor") return "a DTensor, which belongs to a mesh of ranks";
  return tensor.attributes.contains("device") ? "saved from a device without storages" : "";
}

std::string no_candidate(const NamedTensor& tensor, const LinearLayers& layers) {
  if (const std::string why = device_or_mesh(tensor); !why.empty()) return why;
  if (!is_plain(tensor)) return "already " + quantized_as(tensor);
  if (tensor.shape.size() != 2) return std::to_string(tensor.shape.size()) + "-D";
  return layers.why_not(tensor);
}

std::string not_asked(const NamedTensor& tensor, const QuantizeRules& rules, const LinearLayers& layers,
                      const Scheme& scheme) {
  if (matches_any(rules.exclude, tensor.name)) return "excluded";
  if (rules.has_like || !rules.include.empty()) {
    const bool named = matches_any(rules.include, tensor.name) ||
                       std::ranges::find(rules.like, tensor.name) != rules.like.end();
    return named ? "" : "not included";
  }
  if (const auto kept = rules.kept.find(tensor.name); kept != rules.kept.end()) return kept->second;
  if (is_plain(tensor) && scheme.family() != "tinyq" && layers.is_attention_projection(tensor))
    return "the projection of nn.MultiheadAttention, which torchao leaves";
  return no_candidate(tensor, layers);
}

// torchao 0.9.0 and 0.13.0, quant_api.py, _fp8_mm_compat and the checks of its callers
std::string not_for_scaled_mm(const NamedTensor& tensor, const Scheme& scheme) {
  if (tensor.shape[0] % 16 != 0 || tensor.shape[1] % 16 != 0)
    return "torchao leaves a layer float under float8 activations unless 16 divides both its sides";
  if (scheme.params().group_rows == 1 && tensor.dtype != DType::bfloat16)
    return "torchao quantizes only bfloat16 weights to rows under float8 activations";
  return "";
}

std::string not_possible(const NamedTensor& tensor, const Scheme& scheme, Layout layout, Policy activation,
                         const TorchaoClass* cls) {
  if (const std::string why = device_or_mesh(tensor); !why.empty()) return "it is " + why;
  if (!is_plain(tensor)) return "already " + quantized_as(tensor);
  if (tensor.shape.size() != 2) return "it is " + std::to_string(tensor.shape.size()) + "-D, not 2-D";
  if (!is_weight_dtype(tensor.dtype)) return "its dtype is " + std::string(dtype_name(tensor.dtype));
  if (scheme.family() == "tinyq" && last_word(tensor.name) != "weight")
    return "TinyQ quantizes only the weight of a module";
  // torchao 0.5.0 to 0.17.0, quant_api.py, int8_dynamic_activation_int8_weight
  if (scheme.family() == "int8_row_v1" && activation != kWeightOnly && tensor.shape[1] <= 16)
    return "torchao leaves a layer of 16 or fewer inputs float under dynamic int8 activations";
  if (cls && holds_first_generation(*cls) && scheme.family().starts_with("fp8") && activation != kWeightOnly)
    if (std::string why = not_for_scaled_mm(tensor, scheme); !why.empty()) return why;
  const DType dtype = recipe_dtype(scheme, tensor.dtype);
  return scheme.refusal({dtype, tensor.shape[0], tensor.shape[1]}, layout).value_or("");
}

}  // namespace

bool is_candidate(const NamedTensor& tensor, const LinearLayers& layers) {
  return no_candidate(tensor, layers).empty() && is_weight_dtype(tensor.dtype);
}

DType recipe_dtype(const Scheme& scheme, DType weight) {
  return scheme.name() == "tinyq_w8a32" ? DType::float32 : weight;
}

std::vector<QuantizeDecision> quantize_decisions(const Checkpoint& checkpoint, const Scheme& scheme,
                                                 Layout layout, const QuantizeRules& rules, Policy activation,
                                                 const TorchaoClass* cls) {
  std::vector<QuantizeDecision> decisions;
  const LinearLayers layers(checkpoint);
  for (const NamedTensor& tensor : checkpoint.tensors) {
    QuantizeDecision decision = {&tensor, false, not_asked(tensor, rules, layers, scheme)};
    decision.asked = decision.reason.empty();
    if (decision.asked) decision.reason = not_possible(tensor, scheme, layout, activation, cls);
    decisions.push_back(std::move(decision));
  }
  return decisions;
}

std::string basis_of_choice(const Checkpoint& checkpoint, const QuantizeRules& rules) {
  if (rules.has_like) return rules.include.empty() ? "--like" : "--include and --like";
  return rules.include.empty() ? LinearLayers(checkpoint).basis() : "--include";
}

std::vector<std::string> unmatched(const Checkpoint& checkpoint, const QuantizeRules& rules) {
  std::vector<std::string> words;
  const auto matched = [&](const std::string& glob) {
    return std::ranges::any_of(checkpoint.tensors,
                               [&](const NamedTensor& tensor) { return matches(glob, tensor.name); });
  };
  for (const auto* globs : {&rules.include, &rules.exclude})
    for (const std::string& glob : *globs)
      if (!matched(glob)) words.push_back("'" + glob + "' matches no tensor");
  for (const std::string& name : rules.like)
    if (std::ranges::find(checkpoint.tensors, name, &NamedTensor::name) == checkpoint.tensors.end())
      words.push_back(name + " in --like is not in IN");
  return words;
}

std::vector<std::string> excluded_by_config(const nlohmann::ordered_json& config) {
  std::vector<std::string> names;
  if (!config.is_object() || !config.contains("quantization_config")) return names;
  const auto& quantization = config["quantization_config"];
  if (!quantization.is_object() || !quantization.contains("modules_to_not_convert")) return names;
  for (const auto& name : quantization["modules_to_not_convert"])
    if (name.is_string()) names.push_back(name);
  return names;
}

}  // namespace qcts
