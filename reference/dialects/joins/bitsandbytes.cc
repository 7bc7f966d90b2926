// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights of bitsandbytes 0.50.2, as its modules and transformers save them (functional.py,
// QuantState; backends/cpu/ops.py; nn/modules.py). Four bits, of a weight of any shape with `count` elements:
//   weight                                     uint8 [count / 2, 1], the first code in the high half of
//                                              a byte, or the same bytes under another dtype
//                                              (bnb_4bit_quant_storage)
//   weight.absmax                              float32 [blocks]; a block goes on in the next row
//   weight.quant_map                           float32 [16]: the values of the codes
//   weight.quant_state.bitsandbytes__nf4, fp4  uint8: JSON with quant_type, blocksize, dtype and shape
// With double quantization absmax is uint8; weight.nested_absmax and weight.nested_quant_map are float32, and
// the JSON has nested_blocksize, nested_dtype and nested_offset. Eight bits:
//   weight int8 [n, k], SCB float32 [n], weight_format uint8: 0, which stands for rows
// 4-bit parts say what they mean; int8 needs a config.json that says load_in_8bit.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>

#include "reference/dialects/joins/join.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kBnbCodes[] = {".weight", ""};
constexpr std::string_view kBnbSign = ".quant_state.bitsandbytes__";
constexpr std::array<float, 16> kNf4 = {-1.0F,
                                        -0.6961928009986877F,
                                        -0.5250730514526367F,
                                        -0.39491748809814453F,
                                        -0.28444138169288635F,
                                        -0.18477343022823334F,
                                        -0.09105003625154495F,
                                        0.0F,
                                        0.07958029955625534F,
                                        0.16093020141124725F,
                                        0.24611230194568634F,
                                        0.33791524171829224F,
                                        0.44070982933044434F,
                                        0.5626170039176941F,
                                        0.7229568362236023F,
                                        1.0F};
// Twelfths.
constexpr std::array<float, 16> kFp4 = {0,     0.0625F,  8,  12,  4,  6,  2,  3,
                                        -0.0F, -0.0625F, -8, -12, -4, -6, -2, -3};
constexpr float kOne127th = 0.00787401571869850158691F;  // bitsandbytes multiplies by it
constexpr uint64_t kLongestState = 4096;                 // bytes; bitsandbytes writes about 200

std::string refuse_bitsandbytes(const Json& config) {
  for (const char* key : {"load_in_4bit", "load_in_8bit"})
    if (config.is_object() && config.contains(key) && !config[key].is_boolean() && !config[key].is_null())
      return std::string(key) + " of config.json is neither true nor false";
  return "";
}

// Parses the JSON of a quant_state. Throws NotJoined for anything that is not one object with known keys.
Json parse_state(const Tensor& bytes) {
  static const std::set<std::string> kKeys = {"quant_type",       "blocksize",    "dtype",        "shape",
                                              "nested_blocksize", "nested_dtype", "nested_offset"};
  std::vector<std::byte> scratch;
  const std::span<const std::byte> view = row_major_view(bytes, scratch);
  if (view.size() > kLongestState) contradict_layer("its quant_state is too long");
  const std::string_view text(reinterpret_cast<const char*>(view.data()), view.size());
  std::set<std::string> seen;
  bool twice = false;
  const auto note_key = [&](int, Json::parse_event_t event, Json& value) {
    if (event == Json::parse_event_t::key) twice |= !seen.insert(value.get<std::string>()).second;
    return true;
  };
  Json state = Json::parse(text, note_key, false);
  if (!state.is_object()) contradict_layer("its quant_state is not a JSON object");
  if (twice) contradict_layer("its quant_state has a key twice");
  for (const auto& [key, value] : state.items())
    if (!kKeys.contains(key))
      leave_apart("its quant_state has the key " + key + ", which qcts does not know");
  return state;
}

DType bnb_dtype(const Json& state, std::string_view key) {
  const std::string name = json_text(state, key);
  const std::optional<DType> dtype = dtype_from_name(name);
  if (dtype != DType::float32 && dtype != DType::float16 && dtype != DType::bfloat16)
    leave_apart("its " + std::string(key) + " is " + (name.empty() ? "not named" : name));
  return *dtype;
}

std::vector<int64_t> bnb_shape(const Json& state) {
  constexpr int64_t kMostElements = int64_t{1} << 40;
  const auto found = state.find("shape");
  if (found == state.end() || !found->is_array() || found->empty() || found->size() > 8)
    contradict_layer("its quant_state has no shape");
  std::vector<int64_t> shape;
  int64_t count = 1;
  for (const Json& size : *found) {
    if (!size.is_number_integer() || size.get<int64_t>() <= 0 || size.get<int64_t>() > kMostElements / count)
      contradict_layer("its quant_state has an invalid shape");
    shape.push_back(size.get<int64_t>());
    count *= shape.back();
  }
  return shape;
}

// The table is fixed; the file's copy has to be the same.
std::vector<float> table_of(bool nf4, const Tensor& map, bool odd_rows) {
  std::vector<float> table(16);
  for (size_t i = 0; i < table.size(); ++i) table[i] = nf4 ? kNf4[i] : kFp4[i] / 12;
  const std::vector<float> stored = read_floats(map);
  const auto same = [](float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); };
  bool equal = stored.size() == table.size();
  for (size_t i = 0; equal && i < table.size(); ++i)
    equal = same(stored[i], table[i]) || (stored[i] == 0 && table[i] == 0);  // fp4: -0 is stored as 0
  if (!equal) contradict_layer("its quant_map is not the table of " + std::string(nf4 ? "nf4" : "fp4"));
  // Code 8 of fp4 (choice bnb_fp4_zero): rows of odd length take a path that reads the table of the file.
  if (!nf4 && odd_rows) table[8] = 0;
  return table;
}

// The 256 values of bitsandbytes.functional.create_dynamic_map(), sorted: each power of ten from 1e-6 to 1
// has twice as many values as the one below it, in the middle of equal steps from a tenth of it.
std::vector<float> dynamic_map() {
  std::vector<float> values = {0, 1};
  for (int exponent = -6; exponent <= 0; ++exponent) {
    const int count = 1 << (exponent + 6);
    for (int i = 0; i < count; ++i) {
      const double value = std::pow(10.0, exponent) * (0.1 + 0.9 * (i + 0.5) / count);
      values.push_back(static_cast<float>(value));
      values.push_back(static_cast<float>(-value));
    }
  }
  std::ranges::sort(values);
  return values;
}

// Versions of bitsandbytes round the values differently.
bool is_dynamic_map(const std::vector<float>& stored) {
  constexpr float kTolerance = 1e-5F;
  const std::vector<float> known = dynamic_map();
  // A different number of values is a separate contradiction.
  return stored.size() != known.size() || std::ranges::equal(stored, known, [](float a, float b) {
           return std::abs(a - b) <= kTolerance * std::abs(b);
         });
}

NestedScales nested_scales_of(LayerParts& parts, const std::string& stem, const Json& state) {
  NestedScales nested;
  nested.table = read_floats(parts.need(stem + ".nested_quant_map", {DType::float32}));
  nested.absmax = read_floats(parts.need(stem + ".nested_absmax", {DType::float32}));
  if (!is_dynamic_map(nested.table))
    contradict_layer("its nested_quant_map is not the table of bitsandbytes");
  nested.block = json_integer(state, "nested_blocksize").value_or(0);
  if (nested.block < 1) contradict_layer("its quant_state has no nested_blocksize");
  if (bnb_dtype(state, "nested_dtype") != DType::float32) leave_apart("its nested_dtype is not float32");
  const auto offset = state.find("nested_offset");
  if (offset == state.end() || !offset->is_number()) contradict_layer("its quant_state has no nested_offset");
  nested.offset = static_cast<float>(offset->get<double>());
  if (!std::isfinite(nested.offset) || nested.offset < 0)
    contradict_layer("its nested_offset is not the mean of scales");
  return nested;
}

// transformers takes one of the two, and raises an error for both.
void require_one_width(const Json& said) {
  if (json_flag(said, "load_in_4bit") == true && json_flag(said, "load_in_8bit") == true)
    contradict_layer("config.json says both load_in_4bit and load_in_8bit");
}

// Compares what config.json says with the parts.
void check_four_bit_config(const Json& said, const std::string& type, bool nested) {
  require_one_width(said);
  if (json_flag(said, "load_in_4bit") == false ||
      (json_flag(said, "load_in_8bit") == true && json_flag(said, "load_in_4bit") != true))
    contradict_layer("it has 4-bit parts, but config.json does not say load_in_4bit");
  const std::string named = json_text(said, "bnb_4bit_quant_type");
  if (!named.empty() && named != type) contradict_layer("it is " + type + ", but config.json says " + named);
  const std::optional<bool> twice = json_flag(said, "bnb_4bit_use_double_quant");
  if (twice && *twice != nested)
    contradict_layer(std::string("its absmax is ") + (nested ? "" : "not ") +
                     "quantized, but config.json says bnb_4bit_use_double_quant " +
                     (*twice ? "true" : "false"));
}

CodeMatrix bnb_codes(const Tensor& stored, int64_t count) {
  const auto held = static_cast<int64_t>(bytes_of(stored.dtype, stored.shape));
  if (held != (count + 1) / 2)
    contradict_layer("its words hold " + std::to_string(held) + " bytes, not " +
                     std::to_string((count + 1) / 2));
  CodeMatrix codes = rows_of_codes(bytes_as(DType::uint8, stored, {held}), 4, CodeKind::table, 1, count);
  codes.packing = CodePacking::high_first;
  codes.line_stride = codes.line_words();
  return codes;
}

CodedWeight read_four_bits(LayerParts& parts, const Tensor& stored, const Tensor* nf4, const Tensor* fp4,
                           const Json& said) {
  const std::string stem(parts.codes());
  if (!stored.shape.empty() && stored.shape[0] == 1) leave_apart("its words are in one row");
  if (nf4 != nullptr && fp4 != nullptr) contradict_layer("it has a quant_state of nf4 and one of fp4");
  const Tensor& state_bytes = nf4 ? *nf4 : *fp4;
  if (state_bytes.dtype != DType::uint8) contradict_layer("its quant_state is not uint8");
  const Json state = parse_state(state_bytes);
  const std::string type = nf4 ? "nf4" : "fp4";
  if (json_text(state, "quant_type") != type)
    contradict_layer("its quant_state is named " + type + " and says another quant_type");
  CodedWeight weight;
  weight.shape = bnb_shape(state);
  weight.dtype = weight.quantized_from = bnb_dtype(state, "dtype");
  weight.rows = 1;
  weight.columns = numel_of(weight.shape);
  weight.codes = bnb_codes(stored, weight.columns);
  const Tensor& map = parts.need(stem + ".quant_map", {DType::float32});
  weight.codes.table = table_of(nf4 != nullptr, map, weight.shape.back() % 2 != 0);
  ScaleMatrix& scales = weight.scales;
  scales.values = parts.need(stem + ".absmax", {DType::float32, DType::uint8});
  const int64_t block = json_integer(state, "blocksize").value_or(0);
  if (block < 32 || block > 4096 || !std::has_single_bit(static_cast<uint64_t>(block)))
    leave_apart("its blocksize is not one of bitsandbytes' block sizes");
  scales.column_block = block;
  scales.columns = (weight.columns + block - 1) / block;
  const bool nested = scales.values.dtype == DType::uint8;
  const Tensor *inner_map = nullptr, *inner_absmax = nullptr;
  if (nested) {
    scales.nested = nested_scales_of(parts, stem, state);
    inner_map = parts.find(stem + ".nested_quant_map");
    inner_absmax = parts.find(stem + ".nested_absmax");
  } else if (state.contains("nested_offset") || parts.find(stem + ".nested_absmax") != nullptr) {
    contradict_layer("it has parts of double quantization, but its absmax is float32");
  }
  check_four_bit_config(said, type, nested);
  parts.require_no_others({}, stem);
  if (!stem.empty()) parts.require_no_others({"bias"});
  finish_coded(weight, {&map, &state_bytes, inner_map, inner_absmax});
  weight.scheme = "bnb_" + type + "_b" + std::to_string(block) + (nested ? "_dq" : "");
  return weight;
}

CodedWeight read_eight_bits(LayerParts& parts, const Tensor& codes, const QuantConfig& config) {
  require_one_width(config.said);
  const Tensor& scale = parts.need(".SCB", {DType::float32});
  const Tensor* format = parts.find(".weight_format");
  if (json_flag(config.said, "load_in_8bit") != true) {
    if (json_flag(config.said, "load_in_4bit") == true)
      contradict_layer("it is int8, but config.json says load_in_4bit");
    if (json_flag(config.said, "load_in_8bit") == false)
      contradict_layer("it is int8, but config.json says load_in_8bit false");
    leave_apart("config.json does not say load_in_8bit");
  }
  if (codes.shape.size() != 2) leave_apart("a weight that is not two-dimensional");
  if (format != nullptr) {
    std::vector<std::byte> scratch;
    if (format->dtype != DType::uint8 || format->numel() != 1)
      leave_apart("its weight_format is not a single uint8");
    if (row_major_view(*format, scratch)[0] != std::byte{0}) leave_apart("its weight_format is not row");
  }
  CodedWeight weight;
  weight.dtype = config.dtype.value_or(DType::float32);
  weight.rows = codes.shape[0];
  weight.columns = codes.shape[1];
  weight.codes = rows_of_codes(codes, 8, CodeKind::signed_integer, weight.rows, weight.columns);
  weight.scales.values = scale;
  weight.scales.rows = weight.rows;
  weight.scales.column_block = weight.columns;
  weight.factor = kOne127th;
  weight.codes.range = CodeRange{-127, 127};
  weight.quantized_from = DType::float16;  // Int8Params narrows every weight
  parts.require_no_others({"bias"});
  finish_coded(weight, {format});
  weight.scheme = "bnb_int8_row";
  return weight;
}

std::optional<CodedWeight> read_bitsandbytes(LayerParts& parts, const QuantConfig& config) {
  const std::string stem(parts.codes());
  const Tensor& codes = *parts.find(stem);
  const Tensor* nf4 = parts.find(stem + std::string(kBnbSign) + "nf4");
  const Tensor* fp4 = parts.find(stem + std::string(kBnbSign) + "fp4");
  if (nf4 != nullptr || fp4 != nullptr) return read_four_bits(parts, codes, nf4, fp4, config.said);
  if (codes.dtype == DType::int8 && stem == ".weight") return read_eight_bits(parts, codes, config);
  if (parts.find(stem + ".absmax") != nullptr) leave_apart("it has no part quant_state");
  return std::nullopt;
}

}  // namespace

extern const Join kJoin_bitsandbytes = {.format = "bitsandbytes",
                                        .codes = kBnbCodes,
                                        .weight = "",
                                        .refuse = refuse_bitsandbytes,
                                        .read = read_bitsandbytes,
                                        .keeps_name = true,
                                        .sign = kBnbSign};

}  // namespace qcts
