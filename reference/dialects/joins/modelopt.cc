// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights that NVIDIA ModelOpt 0.47.0 exports (torch/quantization/qtensor/*.py), by quant_algo:
//   FP8                        weight float8_e4m3fn [n, k], weight_scale float32
//   FP8_PER_CHANNEL_PER_TOKEN  weight_scale float32 [n]
//   NVFP4, W4A16_NVFP4         weight uint8 [n, k / 2], low nibble first; a code of -0 is read as 0;
//                              weight_scale float8_e4m3fn [n, k / 16], weight_scale_2 float32: a factor
//   MIXED_PRECISION            one of these for each module, named in quantized_layers
// The scales of float8 are rounded to bfloat16 before they are multiplied by.
#include <algorithm>

#include "reference/dialects/joins/join.h"

namespace qcts {
namespace {

constexpr std::string_view kModeloptCodes[] = {".weight"};
constexpr int64_t kNvfp4Block = 16;

enum class ModeloptAlgorithm : uint8_t { none, fp8, fp8_row, nvfp4 };

ModeloptAlgorithm algorithm_of(const std::string& word) {
  if (word == "FP8") return ModeloptAlgorithm::fp8;
  if (word == "FP8_PER_CHANNEL_PER_TOKEN") return ModeloptAlgorithm::fp8_row;
  if (word == "NVFP4" || word == "W4A16_NVFP4") return ModeloptAlgorithm::nvfp4;
  return ModeloptAlgorithm::none;
}

// A model of several recipes has one for each module in `quantized_layers`.
bool is_mixed(const nlohmann::ordered_json& config) {
  return json_text(config, "quant_algo") == "MIXED_PRECISION";
}

std::string refuse_modelopt(const nlohmann::ordered_json& config) {
  const std::string word = json_text(config, "quant_algo");
  if (is_mixed(config)) {
    const bool named = config.contains("quantized_layers") && config["quantized_layers"].is_object();
    return named ? "" : "quant_algo is MIXED_PRECISION, but config.json has no quantized_layers";
  }
  if (algorithm_of(word) != ModeloptAlgorithm::none) return "";
  return word.empty() ? "no quant_algo is given" : "quant_algo " + word + " is not supported";
}

std::vector<ModuleWord> modelopt_words(const nlohmann::ordered_json& config) {
  std::vector<ModuleWord> words;
  if (is_mixed(config))
    for (const auto& [module, recipe] : config["quantized_layers"].items())
      words.push_back({.word = module, .said_by = "quantized_layers"});
  return words;
}

// Returns what config.json says about one module: quant_algo and group_size.
const nlohmann::ordered_json& said_of_modelopt(const nlohmann::ordered_json& config,
                                               const LayerParts& parts) {
  if (!is_mixed(config)) return config;
  const nlohmann::ordered_json& layers = config["quantized_layers"];
  const nlohmann::ordered_json* own = nullptr;
  for (const std::string& word : parts.words()) {
    const auto found = layers.find(word);
    if (found == layers.end()) continue;
    if (own != nullptr && *own != *found)
      contradict_layer("config.json says one thing about " + parts.words()[0] + " and another about " + word);
    own = &*found;
  }
  if (own == nullptr) contradict_layer("quantized_layers do not name it, but it holds codes");
  const std::string word = json_text(*own, "quant_algo");
  if (algorithm_of(word) == ModeloptAlgorithm::none)
    leave_apart(word.empty() ? "no quant_algo is given" : "quant_algo " + word + " is not supported");
  return *own;
}

void set_rows(CodedWeight& weight, ModeloptAlgorithm algorithm) {
  ScaleMatrix& scales = weight.scales;
  scales.column_block = algorithm == ModeloptAlgorithm::nvfp4 ? kNvfp4Block : weight.columns;
  scales.row_block = algorithm == ModeloptAlgorithm::fp8 ? weight.rows : 1;
  scales.rows = algorithm == ModeloptAlgorithm::fp8 ? 1 : weight.rows;
  scales.columns = (weight.columns + scales.column_block - 1) / scales.column_block;
  if (weight.columns % scales.column_block != 0)
    contradict_layer("its columns are not a whole number of blocks of 16");
  if (algorithm == ModeloptAlgorithm::nvfp4 &&
      scales.values.shape != std::vector<int64_t>{scales.rows, scales.columns})
    contradict_layer("blocks of 16 need other scales");
}

// Python's fnmatch, for patterns of only * and ?. Goes back to only the last star, which is enough.
bool fits_glob(std::string_view pattern, std::string_view name) {
  size_t at = 0, star = pattern.npos, resume = 0;
  for (size_t i = 0; i < name.size();) {
    if (at < pattern.size() && (pattern[at] == '?' || (pattern[at] == name[i] && pattern[at] != '*'))) {
      ++at, ++i;
    } else if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      resume = i;
    } else if (star != pattern.npos) {
      at = star + 1;
      i = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == pattern.npos;
}

// config.json calls the list of modules that stay as they are `ignore`, and hf_quant_config.json
// `exclude_modules`.
void require_not_left_out(const std::string& module, const nlohmann::ordered_json& config) {
  for (const char* key : {"ignore", "exclude_modules"}) {
    const auto listed = config.find(key);
    if (listed == config.end() || !listed->is_array()) continue;
    for (const auto& word : *listed)
      if (word.is_string() && fits_glob(word.get<std::string>(), module))
        contradict_layer("config.json leaves out " + word.get<std::string>() + ", but it holds codes");
  }
}

// Returns the config_groups that may be about the module: all of them, or those that name it.
std::vector<nlohmann::ordered_json> groups_of(const nlohmann::ordered_json& config, const LayerParts& parts) {
  std::vector<nlohmann::ordered_json> found;
  const auto groups = config.find("config_groups");
  if (groups == config.end() || !groups->is_object()) return found;
  const auto names_module = [&](const nlohmann::ordered_json& group) {
    return group.is_object() && group.contains("targets") && group["targets"].is_array() &&
           std::ranges::any_of(group["targets"], [&](const nlohmann::ordered_json& target) {
             return target.is_string() &&
                    std::ranges::find(parts.words(), target.get<std::string>()) != parts.words().end();
           });
  };
  for (const auto& [name, group] : groups->items())
    if (!is_mixed(config) || names_module(group)) found.push_back(group);
  return found;
}

void require_group_size(const nlohmann::ordered_json& said,
                        const std::vector<nlohmann::ordered_json>& groups) {
  const auto require = [](const std::optional<int64_t>& size) {
    if (size && size != kNvfp4Block)
      contradict_layer("NVFP4 blocks have 16 elements, but config.json says group_size " +
                       std::to_string(*size));
  };
  require(json_integer(said, "group_size"));
  for (const nlohmann::ordered_json& group : groups)
    if (group.is_object() && group.contains("weights")) require(json_integer(group["weights"], "group_size"));
}

// Scales of x that every group of config.json calls static are in the file. ModelOpt calls those of
// FP8_PER_CHANNEL_PER_TOKEN static too, but has one for each token, and stores none.
void require_input_scale(const LayerParts& parts, const std::vector<nlohmann::ordered_json>& groups) {
  const auto is_static = [](const nlohmann::ordered_json& group) {
    return group.is_object() && group.contains("input_activations") &&
           json_flag(group["input_activations"], "dynamic") == false;
  };
  if (!groups.empty() && std::ranges::all_of(groups, is_static))
    parts.lack("config.json says input_activations that are not dynamic, but it has no input_scale");
}

std::optional<CodedWeight> read_modelopt(LayerParts& parts, const QuantConfig& config) {
  const Tensor* codes = parts.find(".weight");
  const bool pairs = codes->dtype == DType::uint8;
  if (!pairs && codes->dtype != DType::float8_e4m3fn) {
    if (codes->dtype == DType::int8) leave_apart("int8 weights are not supported");
    return std::nullopt;
  }
  const nlohmann::ordered_json& said = said_of_modelopt(config.said, parts);
  const ModeloptAlgorithm algorithm = algorithm_of(json_text(said, "quant_algo"));
  if (pairs != (algorithm == ModeloptAlgorithm::nvfp4))
    contradict_layer("its codes are not those of quant_algo");
  require_not_left_out(parts.module(), config.said);
  const std::vector<nlohmann::ordered_json> groups = groups_of(config.said, parts);
  if (pairs) require_group_size(said, groups);
  if (codes->shape.size() != 2) leave_apart("a weight that is not two-dimensional");
  CodedWeight weight;
  weight.dtype = config.dtype.value_or(DType::bfloat16);
  weight.rows = codes->shape[0];
  weight.columns = codes->shape[1] * (pairs ? 2 : 1);
  weight.codes = rows_of_codes(*codes, pairs ? 4 : 8, pairs ? CodeKind::float4_e2m1 : CodeKind::float8_e4m3,
                               weight.rows, weight.columns);
  weight.scales.values = parts.need(".weight_scale", {pairs ? DType::float8_e4m3fn : DType::float32});
  weight.scales.rounded_first = !pairs;
  weight.plain_zero = pairs;
  weight.scales.zeros_are_nan = true;
  if (pairs) weight.scales.global = parts.need(".weight_scale_2", {DType::float32});
  weight.scales.may_underflow = pairs;  // former versions narrow any scale of a block
  set_rows(weight, algorithm);
  const Tensor* of_input = parts.find(".input_scale");
  if (of_input == nullptr && algorithm != ModeloptAlgorithm::fp8_row) require_input_scale(parts, groups);
  parts.require_no_others({"bias", "k_scale", "v_scale", "k_bias", "v_bias"});
  finish_coded(weight, {of_input});
  weight.scheme = pairs                                 ? "modelopt_nvfp4"
                  : algorithm == ModeloptAlgorithm::fp8 ? "modelopt_fp8_tensor"
                                                        : "modelopt_fp8_row";
  return weight;
}

}  // namespace

extern const Join kJoin_modelopt = {.format = "modelopt",
                                    .codes = kModeloptCodes,
                                    .weight = ".weight",
                                    .refuse = refuse_modelopt,
                                    .read = read_modelopt,
                                    .module_words = modelopt_words};

}  // namespace qcts
