// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/transcode/compressed_tensors.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void not_held(const std::string& why) { throw std::invalid_argument(why); }

std::string range_text(int bits) {
  const int half = 1 << (bits - 1);
  return std::to_string(-half) + " .. " + std::to_string(half - 1);
}

void require_zeros_in_range(const GridWeight& weight) {
  const int half = 1 << (weight.bits - 1);
  for (size_t block = 0; block < weight.zeros.size(); ++block)
    if (weight.zeros[block] < -half || weight.zeros[block] >= half)
      not_held(weight.place(block) + ": the zero point " + std::to_string(weight.zeros[block]) +
               " is not one of " + std::to_string(weight.bits) + " bits (" + range_text(weight.bits) + ")");
}

void require_codes_in_range(const GridWeight& weight) {
  const int half = 1 << (weight.bits - 1);
  for (size_t i = 0; i < weight.codes.size(); ++i)
    if (weight.codes[i] < -half || weight.codes[i] >= half)
      not_held("row " + std::to_string(i / static_cast<size_t>(weight.columns)) + ", column " +
               std::to_string(i % static_cast<size_t>(weight.columns)) + ": the code " +
               std::to_string(weight.codes[i]) + " is not one of " + std::to_string(weight.bits) + " bits (" +
               range_text(weight.bits) + ")");
}

enum class Granularity : uint8_t { tensor, channel, group, block };

Granularity granularity_of(const GridWeight& weight) {
  const bool whole_rows = weight.block_columns() == 1;
  if (weight.row_block == 1 && whole_rows) return Granularity::channel;
  if (weight.block_rows() == 1 && whole_rows) return Granularity::tensor;
  return weight.row_block == 1 ? Granularity::group : Granularity::block;
}

void require_shape(const GridWeight& weight, Granularity granularity) {
  if (granularity == Granularity::group && weight.columns % weight.column_block != 0)
    not_held("row 0, group " + std::to_string(weight.block_columns() - 1) + ": groups of " +
             std::to_string(weight.column_block) + " do not divide " + std::to_string(weight.columns) +
             " columns, as compressed-tensors needs");
  if (granularity == Granularity::block && !weight.element)
    not_held("compressed-tensors packs no integers with scales of " + std::to_string(weight.row_block) +
             " x " + std::to_string(weight.column_block) + " blocks");
  if (weight.group_of.empty()) return;
  if (granularity != Granularity::group || weight.element) not_held("its columns are not in order");
  if (32 % weight.bits != 0)
    not_held("its columns are not in order, which compressed-tensors up to 0.12 reads, and " +
             std::to_string(weight.bits) + " bits, which these versions pack differently");
}

Json arguments_of(const GridWeight& weight, Granularity granularity) {
  static constexpr const char* kStrategies[] = {"tensor", "channel", "group", "block"};
  Json arguments = {{"num_bits", weight.bits},
                    {"type", weight.element ? "float" : "int"},
                    {"symmetric", !weight.has_zeros()},
                    {"strategy", kStrategies[static_cast<int>(granularity)]},
                    {"group_size", nullptr},
                    {"dynamic", false}};
  if (granularity == Granularity::group) arguments["group_size"] = weight.column_block;
  if (granularity == Granularity::block)
    arguments["block_structure"] = Json::array({weight.row_block, weight.column_block});
  if (!weight.group_of.empty()) arguments["actorder"] = "group";
  return arguments;
}

Tensor scales_of(const GridWeight& weight, Granularity granularity) {
  const bool exact =
      std::ranges::all_of(weight.scales, [&](float scale) { return round_to(weight.dtype, scale) == scale; });
  const DType dtype = exact ? weight.dtype : DType::float32;
  std::vector<std::byte> bytes(weight.scales.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < weight.scales.size(); ++i)
    store_float(dtype, bytes, i, static_cast<double>(weight.scales[i]));
  std::vector<int64_t> shape = {weight.block_rows(), weight.block_columns()};
  if (granularity == Granularity::tensor) shape = {1};
  return make_tensor(dtype, std::move(shape), std::move(bytes));
}

Tensor integers_of(DType dtype, std::vector<int64_t> shape, const std::vector<int64_t>& values) {
  std::vector<std::byte> bytes(values.size() * dtype_bytes(dtype));
  for (size_t i = 0; i < values.size(); ++i)  // little-endian
    std::memcpy(&bytes[i * dtype_bytes(dtype)], &values[i], dtype_bytes(dtype));
  return make_tensor(dtype, std::move(shape), std::move(bytes));
}

// Packs signed integers of `bits` bits, plus 2^(bits - 1), into one dense stream of bits for each line.
// `at` returns the integer at a position of a line. The result is [lines, words].
template <typename At>
std::vector<uint32_t> packed_lines(int64_t lines, int64_t length, int bits, const At& at) {
  const int64_t width = (length * bits + 31) / 32;
  std::vector<uint32_t> words(static_cast<size_t>(lines * width));
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t i = 0; i < length; ++i) {
      const uint64_t field = static_cast<uint64_t>(at(line, i) + (1 << (bits - 1))) << (i * bits % 32);
      uint32_t* word = &words[static_cast<size_t>(line * width + i * bits / 32)];
      word[0] |= static_cast<uint32_t>(field);
      if (field >> 32 != 0) word[1] |= static_cast<uint32_t>(field >> 32);
    }
  return words;
}

Tensor words_tensor(std::vector<int64_t> shape, const std::vector<uint32_t>& words) {
  std::vector<std::byte> bytes(words.size() * 4);
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return make_tensor(DType::int32, std::move(shape), std::move(bytes));
}

Tensor packed_codes(const GridWeight& weight) {
  const std::vector<uint32_t> words =
      packed_lines(weight.rows, weight.columns, weight.bits, [&](int64_t row, int64_t column) {
        return static_cast<int>(weight.codes[static_cast<size_t>(row * weight.columns + column)]);
      });
  return words_tensor({weight.rows, (weight.columns * weight.bits + 31) / 32}, words);
}

// Zero points are packed along the rows: [words, groups]. One for the whole tensor stays int8.
Tensor packed_zeros(const GridWeight& weight, Granularity granularity) {
  if (granularity == Granularity::tensor) return integers_of(DType::int8, {1}, {weight.zeros.at(0)});
  const int64_t groups = weight.block_columns(), width = (weight.rows * weight.bits + 31) / 32;
  const std::vector<uint32_t> lines = packed_lines(
      groups, weight.rows, weight.bits,
      [&](int64_t group, int64_t row) { return weight.zeros[static_cast<size_t>(row * groups + group)]; });
  std::vector<uint32_t> words(lines.size());
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t word = 0; word < width; ++word)
      words[static_cast<size_t>(word * groups + group)] = lines[static_cast<size_t>(group * width + word)];
  return words_tensor({width, groups}, words);
}

void add_integers(const GridWeight& weight, Granularity granularity, CompressedWeight& made) {
  require_codes_in_range(weight);
  require_zeros_in_range(weight);
  made.parts.emplace_back("weight_packed", packed_codes(weight));
  made.parts.emplace_back("weight_shape", integers_of(DType::int64, {2}, {weight.rows, weight.columns}));
  if (weight.has_zeros()) made.parts.emplace_back("weight_zero_point", packed_zeros(weight, granularity));
  if (weight.group_of.empty()) return;
  made.has_order = true;
  made.parts.emplace_back("weight_g_idx",
                          integers_of(DType::int32, {weight.columns},
                                      std::vector<int64_t>(weight.group_of.begin(), weight.group_of.end())));
}

void add_floats(const GridWeight& weight, CompressedWeight& made) {
  if (weight.element != DType::float8_e4m3fn)
    not_held("compressed-tensors has no codes of " + std::string(dtype_name(*weight.element)));
  std::vector<std::byte> bytes(weight.codes.size());
  std::memcpy(bytes.data(), weight.codes.data(), bytes.size());
  made.parts.emplace_back("weight",
                          make_tensor(DType::float8_e4m3fn, {weight.rows, weight.columns}, std::move(bytes)));
}

}  // namespace

CompressedWeight compressed_weight(const GridWeight& weight) {
  const Granularity granularity = granularity_of(weight);
  require_shape(weight, granularity);
  CompressedWeight made;
  made.recipe = {{"format", weight.element ? "float-quantized" : "pack-quantized"},
                 {"weights", arguments_of(weight, granularity)},
                 {"input_activations", nullptr},
                 {"output_activations", nullptr}};
  if (weight.element)
    add_floats(weight, made);
  else
    add_integers(weight, granularity, made);
  made.parts.emplace_back("weight_scale", scales_of(weight, granularity));
  return made;
}

Json compressed_config(const std::map<std::string, CompressedWeight*>& modules,
                       const std::vector<std::string>& ignored) {
  std::vector<Json> groups;
  bool has_order = false;
  for (const auto& [module, weight] : modules) {
    has_order = has_order || weight->has_order;
    const auto known = std::ranges::find_if(groups, [&](const Json& group) {
      return group["weights"] == weight->recipe["weights"] && group["format"] == weight->recipe["format"];
    });
    Json& group = known == groups.end() ? groups.emplace_back(weight->recipe) : *known;
    group["targets"].push_back(module);
  }
  Json table = Json::object();
  bool one_format = true;
  for (size_t i = 0; i < groups.size(); ++i) {
    table["group_" + std::to_string(i)] = groups[i];
    one_format = one_format && groups[i]["format"] == groups[0]["format"];
  }
  return {{"config_groups", table},
          {"format", one_format && !groups.empty() ? groups[0]["format"] : Json("mixed-precision")},
          {"global_compression_ratio", nullptr},
          {"ignore", Json(ignored)},
          {"kv_cache_scheme", nullptr},
          {"quant_method", "compressed-tensors"},
          {"quantization_status", "compressed"},
          {"version", has_order ? "0.12.2" : "0.20.0"}};
}

}  // namespace qcts
