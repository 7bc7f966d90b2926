// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights of MLX 0.32.4 (mx.quantize, mx.dequantize), by `mode` of config.json's `quantization`:
//   affine  weight uint32 [n, k b / 32]: b = 2, 3, 4, 5, 6 or 8 bits, a stream along k
//           scales, biases [n, k / g] of the model's dtype: w = round(round(code * scale) + bias)
//   mxfp4, mxfp8, nvfp4  words of float4_e2m1 or float8_e4m3, scales uint8 [n, k / g]: exponents, or
//           float8_e4m3 with nvfp4. The weight is bfloat16.
// Weights of experts have a dimension in front. `quantization` may name modules: each with
// its own {"bits": .., "group_size": ..}, or with false if it is not quantized. Without them, affine has 4
// bits and groups of 64.
#include <algorithm>

#include "reference/dialects/joins/join.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kMlxCodes[] = {".weight"};

struct MlxMode {
  std::string_view name;
  int64_t group_size, bits;
  CodeKind codes;
  DType scales;
};
constexpr MlxMode kMlxFloatModes[] = {
    {"mxfp4", 32, 4, CodeKind::float4_e2m1, DType::uint8},
    {"mxfp8", 32, 8, CodeKind::float8_e4m3, DType::uint8},
    {"nvfp4", 16, 4, CodeKind::float4_e2m1, DType::float8_e4m3fn},
};

std::string refuse_mlx(const Json& config) {
  if (config.contains("quant_method")) return "only what MLX itself writes in `quantization` is supported";
  return "";
}

std::vector<ModuleWord> mlx_words(const Json& config) {
  std::vector<ModuleWord> words;
  for (const auto& [key, value] : config.items())
    if (value.is_object() || value == false)
      words.push_back({.word = key, .said_by = "bits and groups", .required = value.is_object()});
  return words;
}

// Returns the words of `quantization` that are about a module. mlx.nn.quantize takes nothing from the whole
// model for a module that has its own object.
Json said_of_module(const Json& config, const LayerParts& parts) {
  const std::string module = parts.module();
  const auto named = config.find(module);
  const bool is_known = module.empty() || named == config.end() || named->is_null() || named->is_boolean() ||
                        named->is_object();
  if (!is_known) leave_apart("config.json says nothing about it that qcts knows");
  const Json* own = nullptr;
  for (const std::string& word : parts.words()) {
    if (!config.contains(word)) continue;  // of a list of modules left as they are
    if (own != nullptr && *own != config[word])
      contradict_layer("config.json says one thing about " + parts.words()[0] + " and another about " + word);
    own = &config[word];
  }
  if (own == nullptr) {
    const auto is_own = [](const ModuleWord& word) { return word.required; };
    if (module.empty() && std::ranges::any_of(mlx_words(config), is_own))
      leave_apart("config.json has bits and groups for single modules, but it has no module name");
    return config;
  }
  if (*own == false) contradict_layer("config.json says that it is not quantized");
  for (const auto& [key, value] : own->items())
    if (key != "bits" && key != "group_size" && key != "mode")
      leave_apart("config.json says " + key + " about it, which qcts does not know");
  return *own;
}

void set_sizes(CodedWeight& weight, const Tensor& words, const Tensor& scales, int64_t bits,
               int64_t group_size) {
  const std::vector<int64_t>& shape = words.shape;
  if ((shape.size() != 2 && shape.size() != 3) || scales.shape.size() != shape.size())
    leave_apart("a weight that is neither two- nor three-dimensional");
  if (shape.back() * 32 % bits != 0)
    contradict_layer("its words do not hold a whole number of " + std::to_string(bits) + "-bit codes");
  weight.columns = shape.back() * 32 / bits;
  weight.rows = words.numel() / shape.back();
  weight.shape = shape;
  weight.shape.back() = weight.columns;
  std::vector<int64_t> wanted = shape;
  wanted.back() = weight.columns / group_size;
  if (weight.columns % group_size != 0 || scales.shape != wanted)
    contradict_layer(std::to_string(bits) + " bits in groups of " + std::to_string(group_size) +
                     " need other scales");
  weight.scales.rows = weight.rows;
  weight.scales.columns = wanted.back();
  weight.scales.column_block = group_size;
}

CodedWeight read_mlx_affine(LayerParts& parts, const Tensor& words, int64_t bits, int64_t group_size) {
  if (bits < 2 || bits > 8 || bits == 7) leave_apart(std::to_string(bits) + " bits are not supported");
  if (group_size != 32 && group_size != 64 && group_size != 128)
    leave_apart("groups of " + std::to_string(group_size) + " are not supported");
  const Tensor& scales = parts.need(".scales", {DType::float32, DType::float16, DType::bfloat16});
  const Tensor& biases = parts.need(".biases", {DType::float32, DType::float16, DType::bfloat16});
  CodedWeight weight;
  set_sizes(weight, words, scales, bits, group_size);
  if (biases.dtype != scales.dtype || biases.shape != scales.shape)
    contradict_layer("its biases do not match its scales in shape or dtype");
  weight.dtype = weight.quantized_from = scales.dtype;
  weight.codes =
      rows_of_codes(words, static_cast<int>(bits), CodeKind::unsigned_integer, weight.rows, weight.columns);
  weight.scales.values = scales;
  weight.scales.any_sign = true;
  weight.biases = biases;
  weight.scheme = "mlx_int" + std::to_string(bits) + "_g" + std::to_string(group_size);
  return weight;
}

CodedWeight read_mlx_floats(LayerParts& parts, const Tensor& words, const MlxMode& mode) {
  const Tensor& scales = parts.need(".scales", {DType::uint8});
  CodedWeight weight;
  set_sizes(weight, words, scales, mode.bits, mode.group_size);
  weight.dtype = DType::bfloat16;
  weight.codes = rows_of_codes(words, static_cast<int>(mode.bits), mode.codes, weight.rows, weight.columns);
  weight.scales.values = mode.scales == DType::uint8 ? scales : bytes_as(mode.scales, scales, scales.shape);
  weight.scheme = "mlx_" + std::string(mode.name);
  return weight;
}

std::optional<CodedWeight> read_mlx(LayerParts& parts, const QuantConfig& config) {
  const Tensor& words = *parts.find(".weight");
  if (words.dtype != DType::uint32) {
    if (is_float(words.dtype)) return std::nullopt;
    leave_apart("weight is " + std::string(dtype_name(words.dtype)));
  }
  const Json said = said_of_module(config.said, parts);
  for (const char* key : {"bits", "group_size"})
    if (said.contains(key) && !json_integer(said, key))
      leave_apart("config.json has no number for " + std::string(key));
  const std::optional<int64_t> bits = json_integer(said, "bits"),
                               group_size = json_integer(said, "group_size");
  const std::string mode = said.contains("mode") ? json_text(said, "mode") : "affine";
  CodedWeight weight;
  if (const auto floats = std::ranges::find(kMlxFloatModes, mode, &MlxMode::name);
      floats != std::end(kMlxFloatModes)) {
    if (bits.value_or(floats->bits) != floats->bits ||
        group_size.value_or(floats->group_size) != floats->group_size)
      contradict_layer("config.json says " + mode + " with bits or groups that it does not have");
    weight = read_mlx_floats(parts, words, *floats);
  } else {
    if (mode != "affine") leave_apart("mode " + mode + " is not supported");
    weight = read_mlx_affine(parts, words, bits.value_or(4), group_size.value_or(64));
  }
  parts.require_no_others({"bias"});
  finish_coded(weight, {});
  return weight;
}

}  // namespace

extern const Join kJoin_mlx = {.format = "mlx",
                               .codes = kMlxCodes,
                               .weight = ".weight",
                               .refuse = refuse_mlx,
                               .read = read_mlx,
                               .module_words = mlx_words};

}  // namespace qcts
