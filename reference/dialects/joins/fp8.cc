// SPDX-License-Identifier: BSD-3-Clause
// Joins float8 weights with a scale by block or tensor, as DeepSeek and Mistral publish them and transformers
// 5.24.0 writes them (integrations/finegrained_fp8.py):
//   weight            float8_e4m3fn [n, k]
//   weight_scale_inv  float32, bfloat16 or float8_e8m0fnu [ceil(n / rows), ceil(k / columns)], or one value.
//                     It is multiplied by, in spite of its name. DeepSeek-V4 calls it `scale`.
// DeepSeek-V4 stores experts as pairs of float4_e2m1 in int8 [n, k / 2], with a scale for 32 columns.
// config.json names the block in weight_block_size; without blocks it is null. The last blocks of a row or
// column may be partial.
#include "reference/dialects/joins/join.h"

namespace qcts {
namespace {

constexpr std::string_view kFloat8Codes[] = {".weight"};
constexpr int64_t kFloat4Block = 32;

std::string refuse_fp8(const nlohmann::ordered_json& config) {
  if (!config.contains("weight_block_size")) return "config.json has no weight_block_size";
  const bool whole = config["weight_block_size"].is_null();
  return whole || json_pair(config, "weight_block_size")
             ? ""
             : "weight_block_size is not a pair of positive integers";
}

// Scales of x that config.json calls static are in the file, and only these.
void check_activation_scheme(const LayerParts& parts, const nlohmann::ordered_json& said, bool has_scale) {
  const std::string scheme = json_text(said, "activation_scheme");
  if (said.contains("activation_scheme") && scheme != "static" && scheme != "dynamic")
    leave_apart("activation_scheme of config.json is neither static nor dynamic");
  if (scheme == "static" && !has_scale)
    parts.lack("config.json says activation_scheme static, but it has no activation_scale");
  if (scheme == "dynamic" && has_scale)
    contradict_layer("config.json says activation_scheme dynamic, but it has a scale of x");
}

void set_blocks(CodedWeight& weight, int64_t block_rows, int64_t block_columns) {
  ScaleMatrix& scales = weight.scales;
  scales.row_block = block_rows;
  scales.column_block = block_columns;
  scales.rows = (weight.rows + block_rows - 1) / block_rows;
  scales.columns = (weight.columns + block_columns - 1) / block_columns;
  const std::vector<int64_t> wanted = {scales.rows, scales.columns};
  const bool lone = scales.rows * scales.columns == 1 && scales.values.numel() == 1;
  if (!lone && scales.values.shape != wanted)
    contradict_layer("blocks of " + std::to_string(block_rows) + " x " + std::to_string(block_columns) +
                     " need " + std::to_string(scales.rows) + " x " + std::to_string(scales.columns) +
                     " scales");
}

std::optional<CodedWeight> read_fp8(LayerParts& parts, const QuantConfig& config) {
  const Tensor* codes = parts.find(".weight");
  const bool pairs = codes->dtype == DType::int8 || codes->dtype == DType::float4_e2m1fn_x2;
  if (!pairs && codes->dtype != DType::float8_e4m3fn) {
    if (codes->dtype == DType::float8_e5m2) leave_apart("float8_e5m2 is not supported");
    return std::nullopt;
  }
  const std::string format = json_text(config.said, "fmt");
  if (!pairs && !format.empty() && format.find("e4m3") == format.npos)
    contradict_layer("it is float8_e4m3fn, but config.json says fmt " + format);
  if (codes->shape.size() != 2) leave_apart("a weight that is not two-dimensional");
  if (pairs && json_text(config.said, "expert_dtype") != "fp4")
    leave_apart("config.json does not say that bytes are pairs of float4");
  const Tensor* scale = parts.find(".weight_scale_inv");
  const Tensor* named_scale = parts.find(".scale");
  if (scale != nullptr && named_scale != nullptr) leave_apart("it has both weight_scale_inv and scale");
  if (scale == nullptr) scale = named_scale;
  if (scale == nullptr) leave_apart("it has no weight_scale_inv");
  CodedWeight weight;
  weight.dtype = config.dtype.value_or(DType::bfloat16);
  weight.rows = codes->shape[0];
  weight.columns = pairs ? codes->shape[1] * 2 : codes->shape[1];
  weight.codes = rows_of_codes(*codes, pairs ? 4 : 8, pairs ? CodeKind::float4_e2m1 : CodeKind::float8_e4m3,
                               weight.rows, weight.columns);
  weight.codes.word_bits = 8;
  weight.scales.values = *scale;
  switch (scale->dtype) {
    case DType::float32:
    case DType::bfloat16:
    case DType::float8_e8m0fnu:
      break;
    case DType::uint8:
      if (json_text(config.said, "scale_fmt") == "ue8m0") break;
      [[fallthrough]];
    default:
      leave_apart("its scale is " + std::string(dtype_name(scale->dtype)));
  }
  const auto block = json_pair(config.said, "weight_block_size");
  if (weight.rows == 0 || weight.columns == 0) leave_apart("it has no elements");
  if (pairs)
    set_blocks(weight, 1, kFloat4Block);
  else if (block)
    set_blocks(weight, block->first, block->second);
  else
    set_blocks(weight, weight.rows, weight.columns);
  const Tensor* of_input = parts.find(".activation_scale");
  const Tensor* of_static_input = parts.find(".input_scale");
  parts.require_no_others({"bias"});
  check_activation_scheme(parts, config.said, of_input != nullptr || of_static_input != nullptr);
  finish_coded(weight, {of_input, of_static_input});
  weight.scheme = pairs   ? "fp8_experts_e2m1_g32"
                  : block ? "fp8_block" + std::to_string(block->first) + "x" + std::to_string(block->second)
                          : "fp8_tensor";
  return weight;
}

}  // namespace

extern const Join kJoin_fp8 = {"fp8", kFloat8Codes, ".weight", refuse_fp8, read_fp8};

}  // namespace qcts
