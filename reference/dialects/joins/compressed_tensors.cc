// SPDX-License-Identifier: BSD-3-Clause
// Joins the weights of compressed-tensors 0.9 to 0.20 (compressors/*/base.py and helpers.py of 0.20.0):
//   pack-quantized        weight_packed int32 [n, ceil(k b / 32)], codes of b = 1..8 bits minus 2^(b-1)
//   int-quantized         weight int8 [n, k]
//   float-quantized       weight float8_e4m3fn [n, k]
//   naive-quantized       as the two before
//   nvfp4-pack-quantized  weight_packed uint8 [n, k / 2], low nibble first; the scale is divided by
//                         weight_global_scale
//   mxfp4-pack-quantized, mxfp6-pack-quantized, mxfp8-quantized: scales 2^(byte - 127) for 32 columns
// weight_scale is [n, k / group_size], [n, 1] for a channel, one value for a tensor, or one value per block.
// Up to 0.17 a word held 32 / b codes, with idle bits above them. The width or these bits show which it is,
// or else the version.
#include <algorithm>
#include <stdexcept>

#include "reference/dialects/joins/compressed_tensors_config.h"
#include "reference/dialects/joins/join.h"

namespace qcts {
namespace {

constexpr std::string_view kCompressedCodes[] = {".weight_packed", ".weight"};
constexpr std::initializer_list<DType> kScaleFloats = {DType::float32, DType::float16, DType::bfloat16};

struct CompressedShape {
  int64_t rows = 0, columns = 0;
};

CompressedShape matrix_shape(const Tensor& tensor) {
  if (tensor.shape.size() != 2) leave_apart("a weight that is not two-dimensional");
  return {tensor.shape[0], tensor.shape[1]};
}

// Sets the blocks of the scales by the strategy. The number of scales is checked later.
void set_scales(CodedWeight& weight, const CompressedRecipe& recipe, const Tensor& values) {
  ScaleMatrix& scales = weight.scales;
  scales.values = values;
  scales.row_block = recipe.strategy == CompressedStrategy::block    ? recipe.block_rows
                     : recipe.strategy == CompressedStrategy::tensor ? weight.rows
                                                                     : 1;
  scales.column_block = recipe.strategy == CompressedStrategy::block   ? recipe.block_columns
                        : recipe.strategy == CompressedStrategy::group ? recipe.group_size
                                                                       : weight.columns;
  scales.rows = (weight.rows + scales.row_block - 1) / scales.row_block;
  scales.columns = (weight.columns + scales.column_block - 1) / scales.column_block;
  if (recipe.strategy == CompressedStrategy::group && weight.columns % recipe.group_size != 0)
    contradict_layer("groups of " + std::to_string(recipe.group_size) + " do not divide " +
                     std::to_string(weight.columns) + " columns");
  const bool lone = scales.rows == 1 && scales.columns == 1 && values.numel() == 1;
  if (!lone && values.shape != std::vector<int64_t>{scales.rows, scales.columns})
    contradict_layer("config.json asks for " + std::to_string(scales.rows) + " x " +
                     std::to_string(scales.columns) + " scales, but the weight has others");
}

// Returns true if a bit is set that padded words leave idle.
bool uses_all_bits(const Tensor& words, int bits) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(words, scratch);
  const std::byte idle = std::byte(0xFF << (32 / bits * bits - 24) & 0xFF);  // of the highest byte
  for (size_t i = 3; i < bytes.size(); i += 4)
    if ((bytes[i] & idle) != std::byte{0}) return true;
  return false;
}

// How the codes of pack-quantized are packed follows from the width of the words or, if not, from their bits
// or the version.
CodePacking packing_of(const Tensor& packed, int bits, int64_t codes,
                       const std::optional<CodePacking>& of_version) {
  const int64_t words = packed.shape[1];
  const int64_t dense = (codes * bits + 31) / 32, padded = (codes + 32 / bits - 1) / (32 / bits);
  if (words != dense && words != padded)
    contradict_layer("config.json asks for " + std::to_string(bits) + " bits, which take " +
                     std::to_string(dense) + " words, not " + std::to_string(words));
  if (dense == padded && 32 % bits != 0) {
    const bool all_bits = uses_all_bits(packed, bits);
    if (all_bits && of_version == CodePacking::padded)
      contradict_layer("a bit of its words is set that the version of config.json leaves idle");
    if (of_version) return *of_version;
    if (all_bits) return CodePacking::dense;
    leave_apart(
        "its words may be packed densely or padded, and neither their number nor their bits tell which");
  }
  return words == dense ? CodePacking::dense : CodePacking::padded;
}

CompressedShape unpacked_shape(const Tensor& shape, const CompressedShape& words) {
  if (shape.numel() != 2) leave_apart("a weight that is not two-dimensional");
  const std::vector<int64_t> sizes = read_integers(shape);
  // No more than one code per bit, so that no size of a file overflows what follows.
  if (sizes[0] != words.rows || sizes[1] <= 0 || sizes[1] > words.columns * 32)
    contradict_layer("weight_shape is [" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) +
                     "], which its words cannot hold");
  return {sizes[0], sizes[1]};
}

// Bytes may hold codes of fewer bits.
CodeRange range_of(int bits) {
  const auto half = static_cast<float>(1 << (bits - 1));
  return {-half, half - 1};
}

// Zero points are packed along the rows, one line of words for each column of scales; those of a whole
// tensor stay int8.
void set_zeros(CodedWeight& weight, const CompressedRecipe& recipe, const Tensor& zeros,
               CodePacking packing) {
  CodeMatrix matrix;
  matrix.words = zeros;
  if (zeros.dtype == DType::int8) {
    matrix = rows_of_codes(zeros, 8, CodeKind::signed_integer, weight.scales.rows, weight.scales.columns);
    matrix.range = range_of(recipe.bits);
  } else {
    matrix.bits = recipe.bits;
    matrix.kind = CodeKind::offset_integer;
    matrix.packing = packing;
    matrix.lines = weight.scales.columns;
    matrix.length = weight.scales.rows;
    matrix.lines_are_rows = false;
    matrix.line_stride = 1;
    matrix.word_stride = matrix.lines;
    if (zeros.shape != std::vector<int64_t>{matrix.line_words(), matrix.lines})
      contradict_layer("weight_zero_point does not have the shape that the scales need");
  }
  weight.zeros = matrix;
}

// Columns that are in no order belong to the groups that weight_g_idx names, each of which must be full.
void set_order(CodedWeight& weight, const CompressedRecipe& recipe, const Tensor& order) {
  if (order.dtype != DType::int32 || order.numel() != weight.columns)
    contradict_layer("weight_g_idx has the wrong size");
  const std::vector<int64_t> groups = read_integers(order);
  const auto none = std::ranges::count(groups, -1);
  if (none == weight.columns) return;
  if (none != 0 || recipe.strategy != CompressedStrategy::group)
    leave_apart("weight_g_idx names no group for some columns");
  std::vector<int64_t> sizes(static_cast<size_t>(weight.scales.columns));
  for (const int64_t group : groups)
    if (group >= 0 && group < weight.scales.columns) ++sizes[static_cast<size_t>(group)];
  if (std::ranges::any_of(sizes, [&](int64_t size) { return size != recipe.group_size; }))
    contradict_layer("weight_g_idx does not name each group " + std::to_string(recipe.group_size) + " times");
  weight.group_of = order;
}

CodedWeight read_packed_integers(LayerParts& parts, const CompressedRecipe& recipe) {
  const Tensor& words = parts.need(".weight_packed", {DType::int32});
  const Tensor& shape = parts.need(".weight_shape", {DType::int64, DType::int32});
  const CompressedShape packed = matrix_shape(words), size = unpacked_shape(shape, packed);
  CodedWeight weight;
  weight.rows = size.rows;
  weight.columns = size.columns;
  const Tensor& scale = parts.need(".weight_scale", kScaleFloats);
  weight.dtype = weight.quantized_from = scale.dtype;
  const CodePacking packing = packing_of(words, recipe.bits, size.columns, recipe.packing);
  weight.codes = rows_of_codes(words, recipe.bits, CodeKind::offset_integer, size.rows, size.columns);
  weight.codes.packing = packing;
  weight.codes.line_stride = weight.codes.line_words();
  set_scales(weight, recipe, scale);
  if (!recipe.symmetric)
    set_zeros(weight, recipe, parts.need(".weight_zero_point", {DType::int32, DType::int8}), packing);
  if (const Tensor* order = parts.find(".weight_g_idx")) set_order(weight, recipe, *order);
  return weight;
}

// Codes of one byte: int8 or float8.
CodedWeight read_bytes(LayerParts& parts, const CompressedRecipe& recipe) {
  const Tensor& codes = parts.need(".weight", {recipe.is_float ? DType::float8_e4m3fn : DType::int8});
  const CompressedShape size = matrix_shape(codes);
  CodedWeight weight;
  weight.rows = size.rows;
  weight.columns = size.columns;
  const bool exponents = recipe.format == CompressedFormat::mxfp8;
  const Tensor& scale =
      exponents ? parts.need(".weight_scale", {DType::uint8}) : parts.need(".weight_scale", kScaleFloats);
  weight.dtype = weight.quantized_from = exponents ? DType::bfloat16 : scale.dtype;
  weight.codes = rows_of_codes(codes, 8, recipe.is_float ? CodeKind::float8_e4m3 : CodeKind::signed_integer,
                               size.rows, size.columns);
  if (!recipe.is_float) weight.codes.range = range_of(recipe.bits);
  set_scales(weight, recipe, scale);
  if (!recipe.symmetric)
    set_zeros(weight, recipe, parts.need(".weight_zero_point", {DType::int8}), CodePacking::dense);
  return weight;
}

CodedWeight read_packed_floats(LayerParts& parts, const CompressedRecipe& recipe) {
  const Tensor& bytes = parts.need(".weight_packed", {DType::uint8});
  const CompressedShape packed = matrix_shape(bytes);
  CodedWeight weight;
  weight.rows = packed.rows;
  weight.columns = packed.columns * 8 / recipe.bits;
  weight.dtype = DType::bfloat16;
  weight.codes =
      rows_of_codes(bytes, recipe.bits, recipe.bits == 4 ? CodeKind::float4_e2m1 : CodeKind::float6_e2m3,
                    weight.rows, weight.columns);
  const bool two_levels = recipe.format == CompressedFormat::nvfp4;
  set_scales(weight, recipe, parts.need(".weight_scale", {two_levels ? DType::float8_e4m3fn : DType::uint8}));
  if (two_levels) {
    weight.scales.global = parts.need(".weight_global_scale", {DType::float32});
    weight.scales.divides_by_global = true;
  }
  return weight;
}

CodedWeight read_by_format(LayerParts& parts, const CompressedRecipe& recipe) {
  switch (recipe.format) {
    case CompressedFormat::packed_integers:
      return read_packed_integers(parts, recipe);
    case CompressedFormat::bytes:
    case CompressedFormat::mxfp8:
      return read_bytes(parts, recipe);
    case CompressedFormat::nvfp4:
    case CompressedFormat::mxfp4:
    case CompressedFormat::mxfp6:
      break;
  }
  return read_packed_floats(parts, recipe);
}

std::optional<CodedWeight> read_compressed(LayerParts& parts, const QuantConfig& config) {
  const Tensor* packed = parts.find(".weight_packed");
  const Tensor* bytes = packed ? nullptr : parts.find(".weight");
  if (packed == nullptr && (bytes == nullptr || is_wide_float(bytes->dtype))) return std::nullopt;
  if (parts.find(".scale_packed") != nullptr) leave_apart("marlin-24 is not supported");
  const CompressedRecipe recipe = compressed_recipe(parts.module(), parts.words(), config.said);
  if (recipe.group_order && parts.find(".weight_g_idx") == nullptr)
    contradict_layer("config.json says actorder, but it has no weight_g_idx");
  if (!recipe.part_of_x.empty() && parts.find("." + std::string(recipe.part_of_x)) == nullptr)
    parts.lack("config.json says scales of x that are not dynamic, but it has no " +
               std::string(recipe.part_of_x));
  CodedWeight weight = read_by_format(parts, recipe);
  const Tensor* others[] = {parts.find(".weight_shape"), parts.find(".input_scale"),
                            parts.find(".input_global_scale"), parts.find(".input_zero_point")};
  parts.require_no_others({"bias", "output_scale", "output_zero_point"});
  finish_coded(weight, {others[0], others[1], others[2], others[3]});
  weight.scheme = compressed_scheme(recipe);
  return weight;
}

}  // namespace

extern const Join kJoin_compressed_tensors = {.format = "compressed-tensors",
                                              .codes = kCompressedCodes,
                                              .weight = ".weight",
                                              .refuse = refuse_compressed,
                                              .read = read_compressed,
                                              .module_words = compressed_words};

}  // namespace qcts
