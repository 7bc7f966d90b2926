// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights of AutoAWQ 0.2.9, version gemm (utils/packing_utils.py, dequantize_gemm):
//   qweight  int32 [k, n / 8]       eight columns per word, in the order 0 2 4 6 1 3 5 7
//   qzeros   int32 [groups, n / 8]  the same; nothing is subtracted
//   scales   float16 [groups, n]
#include <algorithm>

#include "reference/dialects/joins/words_by_column.h"

namespace qcts {
namespace {

constexpr std::string_view kAwqCodes[] = {".qweight"};

// Returns the first of two words that the configuration has: AutoAWQ's own file abbreviates.
std::optional<int64_t> awq_integer(const nlohmann::ordered_json& config, std::string_view word,
                                   std::string_view own) {
  const std::optional<int64_t> found = json_integer(config, word);
  return found ? found : json_integer(config, own);
}

std::string refuse_awq(const nlohmann::ordered_json& config) {
  std::string version = json_text(config, "version");
  for (char& c : version)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (version != "gemm")
    return version.empty() ? "config.json has no version" : "version " + version + " is not supported";
  if (json_text(config, "quant_method").find("marlin") != std::string::npos)
    return "marlin tiles are not supported";
  const std::string backend = json_text(config, "backend");
  if (!backend.empty() && backend != "autoawq") return "backend " + backend + " is not supported";
  const std::optional<int64_t> bits = awq_integer(config, "bits", "w_bit");
  if (!bits) return lacks_integer(config, "bits");
  if (bits != 4) return "only 4-bit codes are supported";
  return awq_integer(config, "group_size", "q_group_size") ? "" : lacks_integer(config, "group_size");
}

// Readers of symmetric weights look at no zero points, and take 8 for each.
void require_zero_points(const CodedWeight& weight, const nlohmann::ordered_json& config) {
  constexpr int64_t kMiddle = 8;
  const bool none = json_flag(config, "zero_point") == false, symmetric = json_flag(config, "sym") == true;
  if ((none || symmetric) &&
      std::ranges::any_of(fields_of(*weight.zeros), [](int64_t zero) { return zero != kMiddle; }))
    contradict_layer(std::string("config.json says ") + (none ? "zero_point false" : "sym") +
                     ", but its zero points are not all 8");
}

std::optional<CodedWeight> read_awq(LayerParts& parts, const QuantConfig& config) {
  const Tensor& words = parts.need(".qweight", {DType::int32});
  const Tensor& scales = parts.need(".scales", {DType::float16, DType::bfloat16});
  if (words.shape.size() != 2 || scales.shape.size() != 2)
    leave_apart("a weight that is not two-dimensional");
  const int64_t group_size = *awq_integer(config.said, "group_size", "q_group_size");
  CodedWeight weight;
  weight.rows = scales.shape[1];
  weight.columns = words.shape[0];
  weight.dtype = weight.quantized_from = scales.dtype;
  if (words.shape[1] * 8 != weight.rows)
    contradict_layer("its words hold " + std::to_string(words.shape[1] * 8) + " rows, and its scales " +
                     std::to_string(weight.rows));
  CodeMatrix& codes = weight.codes;
  codes.words = words;
  codes.packing = CodePacking::awq;
  codes.lines = weight.columns;
  codes.length = weight.rows;
  codes.lines_are_rows = false;
  codes.line_stride = codes.line_words();
  set_groups(weight, scales, parts.need(".qzeros", {DType::int32}), group_size);
  parts.require_no_others({"bias"});
  finish_coded(weight, {});
  require_zero_points(weight, config.said);
  weight.scheme = "awq_int4_" + group_word(group_size);
  return weight;
}

}  // namespace

extern const Join kJoin_awq = {"awq", kAwqCodes, ".weight", refuse_awq, read_awq};

}  // namespace qcts
