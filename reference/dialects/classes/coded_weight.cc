// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/classes/coded_weight.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr std::array<int, 8> kAwqPlaces = {0, 4, 1, 5, 2, 6, 3, 7};  // of the columns in a word

uint64_t word_at(std::span<const std::byte> bytes, int bits, int64_t index) {
  const size_t width = static_cast<size_t>(bits) / 8;
  uint64_t word = 0;
  std::memcpy(&word, bytes.data() + static_cast<size_t>(index) * width, width);
  return word;
}

// Reads the codes of a matrix, one after the other.
class CodeReader {
 public:
  explicit CodeReader(const CodeMatrix& matrix)
      : matrix_(matrix), bytes_(row_major_view(matrix.words, scratch_)), values_(values_of(matrix)) {}

  uint64_t bits_at(int64_t line, int64_t position) const {
    const int word_bits = matrix_.word_bits, bits = matrix_.bits;
    int64_t word, shift;
    if (matrix_.packing == CodePacking::padded) {
      const int64_t per_word = word_bits / bits;
      word = position / per_word;
      shift = position % per_word * bits;
    } else if (matrix_.packing == CodePacking::high_first) {
      word = position / 2;
      shift = position % 2 == 0 ? 4 : 0;
    } else if (matrix_.packing == CodePacking::awq) {
      word = position / 8;
      shift = kAwqPlaces[static_cast<size_t>(position % 8)] * bits;
    } else {
      word = position * bits / word_bits;
      shift = position * bits % word_bits;
    }
    const int64_t at = line * matrix_.line_stride + word * matrix_.word_stride;
    uint64_t field = word_at(bytes_, word_bits, at) >> shift;
    if (shift + bits > word_bits)
      field |= word_at(bytes_, word_bits, at + matrix_.word_stride) << (word_bits - shift);
    return field & ((uint64_t{1} << bits) - 1);
  }
  float value(uint64_t bits) const { return values_[bits]; }
  float at(int64_t line, int64_t position) const { return values_[bits_at(line, position)]; }

 private:
  static float value_of(const CodeMatrix& matrix, int field) {
    const int half = 1 << (matrix.bits - 1);
    switch (matrix.kind) {
      case CodeKind::unsigned_integer:
        return static_cast<float>(field);
      case CodeKind::offset_integer:
        return static_cast<float>(field - half);
      case CodeKind::signed_integer:
        return static_cast<float>(field < half ? field : field - 2 * half);
      case CodeKind::float8_e4m3:
        return static_cast<float>(decode_float(DType::float8_e4m3fn, static_cast<uint64_t>(field)));
      case CodeKind::float6_e2m3:
        return static_cast<float>(decode_float(DType::float6_e2m3fn, static_cast<uint64_t>(field)));
      case CodeKind::float4_e2m1:
        return static_cast<float>(decode_float(DType::float4_e2m1fn_x2, static_cast<uint64_t>(field)));
      case CodeKind::table:
        return matrix.table.at(static_cast<size_t>(field));
    }
    return 0;
  }
  static std::vector<float> values_of(const CodeMatrix& matrix) {
    std::vector<float> values(size_t{1} << matrix.bits);
    for (size_t i = 0; i < values.size(); ++i) values[i] = value_of(matrix, static_cast<int>(i));
    return values;
  }

  const CodeMatrix& matrix_;
  std::vector<std::byte> scratch_;
  std::span<const std::byte> bytes_;
  std::vector<float> values_;
};

std::vector<float> nested_scales(const Tensor& codes, const NestedScales& nested) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(codes, scratch);
  std::vector<float> scales(bytes.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    const float scale = nested.table.at(std::to_integer<size_t>(bytes[i])) *
                        nested.absmax.at(i / static_cast<size_t>(nested.block));
    scales[i] = scale + nested.offset;
  }
  return scales;
}

std::vector<float> scales_of_file(const ScaleMatrix& scales) {
  if (scales.nested) return nested_scales(scales.values, *scales.nested);
  return scales.values.dtype == DType::uint8
             ? read_floats(bytes_as(DType::float8_e8m0fnu, scales.values, scales.values.shape))
             : read_floats(scales.values);
}

// The zero points of one row, one for each group of columns.
void read_zeros(const CodedWeight& weight, const std::optional<CodeReader>& reader, int64_t row,
                std::vector<float>& zeros) {
  for (int64_t group = 0; group < weight.scales.columns; ++group) {
    auto zero = static_cast<float>(weight.zero);
    const int64_t line = row / weight.scales.row_block;
    if (reader) zero += weight.zeros->lines_are_rows ? reader->at(line, group) : reader->at(group, line);
    zeros[static_cast<size_t>(group)] = zero;
  }
}

}  // namespace

int64_t CodeMatrix::line_words() const {
  const int64_t per_word = packing == CodePacking::awq ? 8 : word_bits / bits;
  return packing == CodePacking::dense ? (length * bits + word_bits - 1) / word_bits
                                       : (length + per_word - 1) / per_word;
}

namespace {

std::string size_contradiction(const std::string& what, int64_t held, int64_t wanted) {
  return held == wanted ? ""
                        : what + " hold " + std::to_string(held) + " elements, not " + std::to_string(wanted);
}

std::string matrix_contradiction(const std::string& what, const CodeMatrix& matrix) {
  if (static_cast<int>(dtype_bits(matrix.words.dtype)) != matrix.word_bits)
    return what + " are " + std::string(dtype_name(matrix.words.dtype));
  return size_contradiction(what, matrix.words.numel(), matrix.lines * matrix.line_words());
}

std::string group_contradiction(const CodedWeight& weight) {
  if (!weight.group_of) return "";
  if (weight.group_of->dtype != DType::int32) return "the groups of the columns are not int32";
  const std::string size =
      size_contradiction("the groups of columns", weight.group_of->numel(), weight.columns);
  if (!size.empty()) return size;
  const std::vector<int64_t> groups = read_integers(*weight.group_of);
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i] < 0 || groups[i] >= weight.scales.columns)
      return "column " + std::to_string(i) + " is in group " + std::to_string(groups[i]) + " of " +
             std::to_string(weight.scales.columns);
  return "";
}

bool covers(int64_t blocks, int64_t block, int64_t length) {
  return block > 0 && blocks == (length + block - 1) / block;
}

}  // namespace

uint64_t formula_bytes_of(const CodedWeight& weight) {
  const auto of_matrix = [](const CodeMatrix& matrix) {
    return static_cast<uint64_t>(matrix.lines * matrix.line_words() * matrix.word_bits / 8);
  };
  const ScaleMatrix& scales = weight.scales;
  return of_matrix(weight.codes) + (weight.zeros ? of_matrix(*weight.zeros) : 0) +
         static_cast<uint64_t>(scales.rows * scales.columns) * dtype_bytes(scales.values.dtype) +
         (weight.biases ? static_cast<uint64_t>(scales.rows * scales.columns) * dtype_bytes(weight.dtype)
                        : 0) +
         (scales.global ? 4 : 0) + (weight.group_of ? 4 * static_cast<uint64_t>(weight.columns) : 0);
}

namespace {

std::string nested_contradiction(const ScaleMatrix& scales) {
  const NestedScales& nested = *scales.nested;
  if (scales.values.dtype != DType::uint8) return "the scales are not bytes";
  if (nested.table.size() != 256) return "the table of the scales does not hold 256 values";
  const int64_t count = scales.rows * scales.columns;
  if (!covers(static_cast<int64_t>(nested.absmax.size()), nested.block, count))
    return "blocks of " + std::to_string(nested.block) + " need a different number of nested scales";
  return "";
}

std::string bias_contradiction(const CodedWeight& weight) {
  if (!weight.biases) return "";
  if (weight.biases->dtype != weight.dtype)
    return "the biases are " + std::string(dtype_name(weight.biases->dtype));
  return size_contradiction("the biases", weight.biases->numel(), weight.scales.rows * weight.scales.columns);
}

}  // namespace

std::string coded_contradiction(const CodedWeight& weight) {
  const ScaleMatrix& scales = weight.scales;
  const CodeMatrix& codes = weight.codes;
  const bool by_row = codes.lines_are_rows;
  if (codes.lines != (by_row ? weight.rows : weight.columns) ||
      codes.length != (by_row ? weight.columns : weight.rows))
    return "the codes do not have the shape of the weight";
  if (std::string text = matrix_contradiction("the codes", codes); !text.empty()) return text;
  if (!covers(scales.rows, scales.row_block, weight.rows) ||
      (!weight.group_of && !covers(scales.columns, scales.column_block, weight.columns)))
    return "the scales do not cover the weight";
  if (std::string text =
          size_contradiction("the scales", scales.values.numel(), scales.rows * scales.columns);
      !text.empty())
    return text;
  if (scales.nested)
    if (std::string text = nested_contradiction(scales); !text.empty()) return text;
  if (std::string text = bias_contradiction(weight); !text.empty()) return text;
  if (scales.global && (scales.global->numel() != 1 || scales.global->dtype != DType::float32))
    return "the global scale is not one float32";
  if (weight.zeros) {
    const CodeMatrix& zeros = *weight.zeros;
    const bool by_scale_row = zeros.lines_are_rows;
    if (zeros.lines != (by_scale_row ? scales.rows : scales.columns) ||
        zeros.length != (by_scale_row ? scales.columns : scales.rows))
      return "there are not as many zero points as scales";
    if (std::string text = matrix_contradiction("the zero points", zeros); !text.empty()) return text;
  }
  return group_contradiction(weight);
}

std::vector<float> effective_scales(const CodedWeight& weight) {
  const ScaleMatrix& scales = weight.scales;
  const std::vector<float> stored = scales_of_file(scales);
  const float global = scales.global ? read_floats(*scales.global).at(0) : 1;
  std::vector<float> result(stored.size());
  for (int64_t row = 0; row < scales.rows; ++row)
    for (int64_t column = 0; column < scales.columns; ++column) {
      const int64_t from = scales.transposed ? column * scales.rows + row : row * scales.columns + column;
      float scale = stored[static_cast<size_t>(from)];
      if (scales.global) scale = scales.divides_by_global ? scale / global : scale * global;
      if (scales.rounded_first) scale = round_to(weight.dtype, scale);
      result[static_cast<size_t>(row * scales.columns + column)] = scale;
    }
  return result;
}

float value_of_element(const CodedWeight& weight, const CodedElement& element) {
  const float product = (element.code - element.zero) * element.scale;
  return weight.biases ? round_to(weight.dtype, product) + element.bias : product * weight.factor;
}

std::vector<size_t> groups_of_columns(const CodedWeight& weight) {
  std::vector<size_t> groups(static_cast<size_t>(weight.columns));
  const std::vector<int64_t> named =
      weight.group_of ? read_integers(*weight.group_of) : std::vector<int64_t>();
  for (size_t j = 0; j < groups.size(); ++j)
    groups[j] =
        weight.group_of ? static_cast<size_t>(named[j]) : j / static_cast<size_t>(weight.scales.column_block);
  return groups;
}

void for_each_coded_row(const CodedWeight& weight,
                        const std::function<void(int64_t, std::span<const CodedElement>)>& visit) {
  const CodeReader codes(weight.codes);
  std::optional<CodeReader> zero_codes;
  if (weight.zeros) zero_codes.emplace(*weight.zeros);
  const std::vector<float> scales = effective_scales(weight);
  const std::vector<float> biases = weight.biases ? read_floats(*weight.biases) : std::vector<float>();
  const std::vector<size_t> groups = groups_of_columns(weight);
  std::vector<float> zeros(static_cast<size_t>(weight.scales.columns));
  std::vector<CodedElement> elements(static_cast<size_t>(weight.columns));
  for (int64_t row = 0; row < weight.rows; ++row) {
    read_zeros(weight, zero_codes, row, zeros);
    const auto first = static_cast<size_t>(row / weight.scales.row_block * weight.scales.columns);
    for (size_t column = 0; column < elements.size(); ++column) {
      const auto at = static_cast<int64_t>(column);
      const size_t group = groups[column];
      float code = weight.codes.lines_are_rows ? codes.at(row, at) : codes.at(at, row);
      if (weight.plain_zero && code == 0) code = 0;
      elements[column] = {code, zeros[group], scales[first + group],
                          biases.empty() ? 0 : biases[first + group]};
    }
    visit(row, elements);
  }
}

Tensor dense_of_coded(const CodedWeight& weight, const std::vector<int64_t>& shape) {
  std::vector<std::byte> bytes(bytes_of(weight.dtype, shape));
  const int64_t expert_rows = weight.rows / std::max<int64_t>(1, weight.experts);
  for_each_coded_row(weight, [&](int64_t row, std::span<const CodedElement> elements) {
    for (int64_t column = 0; column < weight.columns; ++column) {
      const float value = value_of_element(weight, elements[static_cast<size_t>(column)]);
      const int64_t place =
          weight.transposed ? (row / expert_rows * weight.columns + column) * expert_rows + row % expert_rows
                            : row * weight.columns + column;
      store_float(weight.dtype, bytes, static_cast<size_t>(place), value);
    }
  });
  return make_tensor(weight.dtype, shape, std::move(bytes), weight.scheme);
}

std::vector<int64_t> fields_of(const CodeMatrix& matrix) {
  const CodeReader reader(matrix);
  std::vector<int64_t> fields;
  fields.reserve(static_cast<size_t>(matrix.lines * matrix.length));
  for (int64_t line = 0; line < matrix.lines; ++line)
    for (int64_t i = 0; i < matrix.length; ++i)
      fields.push_back(static_cast<int64_t>(reader.bits_at(line, i)));
  return fields;
}

std::vector<int64_t> read_integers(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = row_major_view(tensor, scratch);
  const int bits = static_cast<int>(dtype_bits(tensor.dtype));
  std::vector<int64_t> values(static_cast<size_t>(tensor.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t word = word_at(bytes, bits, static_cast<int64_t>(i));
    values[i] = static_cast<int64_t>(word << (64 - bits)) >> (64 - bits);
  }
  return values;
}

std::vector<float> read_floats(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  return load_floats(tensor.dtype, row_major_view(tensor, scratch));
}

Tensor bytes_as(DType dtype, const Tensor& tensor, std::vector<int64_t> shape) {
  if (!tensor.is_contiguous()) return make_tensor(dtype, std::move(shape), row_major_bytes(tensor));
  Tensor view = tensor;
  view.dtype = dtype;
  view.offset_elems *= static_cast<int64_t>(dtype_bytes(tensor.dtype));
  view.stride = contiguous_stride(shape);
  view.shape = std::move(shape);
  return view;
}

}  // namespace qcts
