// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights that NVIDIA ModelOpt 0.47.0 exports (torch/quantization/qtensor/*.py), by quant_algo:
//   FP8                        weight float8_e4m3fn [n, k], weight_scale float32
//   FP8_PER_CHANNEL_PER_TOKEN  weight_scale float32 [n]
//   NVFP4, W4A16_NVFP4         weight uint8 [n, k / 2], low nibble first, weight_scale float8_e4m3fn [n, k /
//   16],
//                              weight_scale_2 float32, which is multiplied by; a code of -0 is read as 0
// The scales of float8 are rounded to bfloat16 before they are multiplied by.
#include <algorithm>

#include "reference/dialects/joins/join.h"

namespace qcts {
namespace {

constexpr std::string_view kModeloptCodes[] = {".weight"};
constexpr int64_t kNvfp4Block = 16;

enum class ModeloptAlgorithm : uint8_t { none, fp8, fp8_row, nvfp4 };

ModeloptAlgorithm algorithm_of(const nlohmann::ordered_json& config) {
  const std::string word = json_text(config, "quant_algo");
  if (word == "FP8") return ModeloptAlgorithm::fp8;
  if (word == "FP8_PER_CHANNEL_PER_TOKEN") return ModeloptAlgorithm::fp8_row;
  if (word == "NVFP4" || word == "W4A16_NVFP4") return ModeloptAlgorithm::nvfp4;
  return ModeloptAlgorithm::none;
}

std::string refuse_modelopt(const nlohmann::ordered_json& config) {
  if (algorithm_of(config) != ModeloptAlgorithm::none) return "";
  const std::string word = json_text(config, "quant_algo");
  return word.empty() ? "no quant_algo is named" : "quant_algo " + word + " is not read";
}

void set_rows(CodedWeight& weight, ModeloptAlgorithm algorithm) {
  ScaleMatrix& scales = weight.scales;
  scales.column_block = algorithm == ModeloptAlgorithm::nvfp4 ? kNvfp4Block : weight.columns;
  scales.row_block = algorithm == ModeloptAlgorithm::fp8 ? weight.rows : 1;
  scales.rows = algorithm == ModeloptAlgorithm::fp8 ? 1 : weight.rows;
  scales.columns = (weight.columns + scales.column_block - 1) / scales.column_block;
  if (weight.columns % scales.column_block != 0) contradict_layer("its columns are no whole blocks of 16");
  if (algorithm == ModeloptAlgorithm::nvfp4 &&
      scales.values.shape != std::vector<int64_t>{scales.rows, scales.columns})
    contradict_layer("blocks of 16 ask for other scales");
}

// fnmatch of Python, for patterns of * and ? alone. Goes back to the last star alone, which is enough.
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

void require_group_size(const nlohmann::ordered_json& config) {
  const auto require = [](const std::optional<int64_t>& size) {
    if (size && size != kNvfp4Block)
      contradict_layer("blocks of NVFP4 are of 16, but config.json says group_size " + std::to_string(*size));
  };
  require(json_integer(config, "group_size"));
  const auto groups = config.find("config_groups");
  if (groups == config.end() || !groups->is_object()) return;
  for (const auto& [name, group] : groups->items())
    if (group.is_object() && group.contains("weights")) require(json_integer(group["weights"], "group_size"));
}

// Scales of x that every group of config.json calls static lie in the file.
void require_input_scale(const LayerParts& parts, const nlohmann::ordered_json& config, bool has_scale) {
  const auto groups = config.find("config_groups");
  if (has_scale || groups == config.end() || !groups->is_object() || groups->empty()) return;
  const auto is_static = [](const nlohmann::ordered_json& group) {
    return group.is_object() && group.contains("input_activations") &&
           json_flag(group["input_activations"], "dynamic") == false;
  };
  if (std::ranges::all_of(*groups, is_static))
    parts.lack("config.json says input_activations that are not dynamic, but it has no input_scale");
}

std::optional<CodedWeight> read_modelopt(LayerParts& parts, const QuantConfig& config) {
  const Tensor* codes = parts.find(".weight");
  const bool pairs = codes->dtype == DType::uint8;
  if (!pairs && codes->dtype != DType::float8_e4m3fn) {
    if (codes->dtype == DType::int8) leave_apart("int8 weights are not read");
    return std::nullopt;
  }
  const ModeloptAlgorithm algorithm = algorithm_of(config.said);
  if (pairs != (algorithm == ModeloptAlgorithm::nvfp4))
    contradict_layer("its codes are not those of quant_algo");
  require_not_left_out(parts.module(), config.said);
  if (pairs) require_group_size(config.said);
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
  if (pairs) weight.scales.global = parts.need(".weight_scale_2", {DType::float32});
  weight.scales.may_underflow = pairs;  // former versions narrow any scale of a block
  set_rows(weight, algorithm);
  const Tensor* of_input = parts.find(".input_scale");
  require_input_scale(parts, config.said, of_input != nullptr);
  parts.require_no_others({"bias", "k_scale", "v_scale", "k_bias", "v_bias"});
  finish_coded(weight, {of_input});
  weight.scheme = pairs                                 ? "modelopt_nvfp4"
                  : algorithm == ModeloptAlgorithm::fp8 ? "modelopt_fp8_tensor"
                                                        : "modelopt_fp8_row";
  return weight;
}

}  // namespace

extern const Join kJoin_modelopt = {"modelopt", kModeloptCodes, ".weight", refuse_modelopt, read_modelopt};

}  // namespace qcts
