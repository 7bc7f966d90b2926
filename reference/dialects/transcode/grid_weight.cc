// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/transcode/grid_weight.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

[[noreturn]] void no_grid(const std::string& why) { throw std::invalid_argument(why); }

std::string number_text(double value) {
  std::ostringstream text;
  text.precision(9);
  text << value;
  return text.str();
}

void size_grid(GridWeight& grid) {
  grid.codes.resize(static_cast<size_t>(grid.rows * grid.columns));
  grid.scales.resize(static_cast<size_t>(grid.block_rows() * grid.block_columns()));
  grid.zeros.resize(grid.scales.size());
}

void require_finite(const GridWeight& grid) {
  for (size_t block = 0; block < grid.scales.size(); ++block)
    if (!std::isfinite(grid.scales[block]))
      no_grid(grid.place(block) + ": the scale is " + number_text(grid.scales[block]));
  if (!grid.element) return;
  for (size_t i = 0; i < grid.codes.size(); ++i)
    if (!std::isfinite(decode_float(*grid.element, static_cast<uint8_t>(grid.codes[i]))))
      no_grid("row " + std::to_string(i / static_cast<size_t>(grid.columns)) + ", column " +
              std::to_string(i % static_cast<size_t>(grid.columns)) + ": the code is not a finite number");
}

bool is_integer_kind(CodeKind kind) {
  return kind == CodeKind::unsigned_integer || kind == CodeKind::offset_integer ||
         kind == CodeKind::signed_integer;
}

void require_affine(const CodedWeight& weight) {
  if (weight.biases || weight.factor != 1)
    no_grid("elements are more than (code - zero) * scale, which only --to dense writes");
  if (weight.experts > 1 || weight.transposed) no_grid("a stack of experts, which only --to dense writes");
  if (!is_integer_kind(weight.codes.kind) && weight.codes.kind != CodeKind::float8_e4m3)
    no_grid("codes of " + std::to_string(weight.codes.bits) +
            "-bit floats or of a table, which only --to dense writes");
}

// Takes the groups of columns, unless they are in order.
void set_group_order(GridWeight& grid, const std::vector<size_t>& groups) {
  for (size_t column = 0; column < groups.size(); ++column)
    if (groups[column] != column / static_cast<size_t>(grid.column_block)) {
      grid.group_of.assign(groups.begin(), groups.end());
      return;
    }
}

GridWeight grid_of_coded(const CodedWeight& weight) {
  require_affine(weight);
  GridWeight grid;
  grid.rows = weight.rows;
  grid.columns = weight.columns;
  grid.dtype = weight.dtype;
  grid.bits = weight.codes.bits;
  grid.row_block = weight.scales.row_block;
  grid.column_block = weight.scales.column_block;
  size_grid(grid);
  const std::vector<size_t> groups = groups_of_columns(weight);
  set_group_order(grid, groups);
  const bool floats = weight.codes.kind == CodeKind::float8_e4m3;
  if (floats) {
    grid.element = DType::float8_e4m3fn;
    const std::vector<int64_t> fields = fields_of(weight.codes);
    std::ranges::transform(fields, grid.codes.begin(),
                           [](int64_t field) { return static_cast<int8_t>(field); });
  }
  const int offset = weight.codes.kind == CodeKind::unsigned_integer ? 1 << (grid.bits - 1) : 0;
  for_each_coded_row(weight, [&](int64_t row, std::span<const CodedElement> elements) {
    const int64_t first = row / grid.row_block * grid.block_columns();
    for (size_t column = 0; column < elements.size(); ++column) {
      const size_t block = static_cast<size_t>(first) + groups[column];
      grid.scales[block] = elements[column].scale;
      grid.zeros[block] = static_cast<int>(elements[column].zero) - offset;
      if (!floats)
        grid.codes[static_cast<size_t>(row * grid.columns) + column] =
            static_cast<int8_t>(static_cast<int>(elements[column].code) - offset);
    }
  });
  return grid;
}

// The families whose weights are (code - zero) * scale, or code * scale + zero.
bool is_affine_family(std::string_view family) {
  return family == "intx" || family.starts_with("int8_") || family == "int4_plain" ||
         family == "int4_tinygemm" || family == "int4_int32" || family == "fp8" || family == "fp8_row";
}

// Returns z of code * scale + zero = (code - z) * scale.
int integer_zero(const ExactWeight& weight, const std::string& place) {
  if (weight.zero == 0) return 0;
  const double whole = std::nearbyint(-weight.zero / weight.scale);
  if (!(std::fabs(whole) < 1024) || whole * weight.scale != -weight.zero)
    no_grid(place + ": the zero point " + number_text(weight.zero) + " is not a whole number of scales of " +
            number_text(weight.scale));
  return static_cast<int>(whole);
}

// Reads one row of a scheme's weight. `values` are those of its codes, by their index.
class SchemeRows {
 public:
  explicit SchemeRows(const SchemeTensor& tensor)
      : tensor_(tensor),
        shape_{tensor.dtype, tensor.n, tensor.k},
        planes_(tensor.layout == kPlain ? tensor.planes
                                        : tensor.scheme->unpack(tensor.planes, shape_, tensor.layout)),
        values_(tensor.scheme->codes().values),
        exact_(static_cast<size_t>(tensor.k)),
        indices_(static_cast<size_t>(tensor.k)) {}

  void read(int64_t row, GridWeight& grid) {
    tensor_.scheme->exact_row(planes_, shape_, row, exact_);
    const bool floating = tensor_.scheme->params().zero_point == ZeroPointKind::floating;
    if (!floating) tensor_.scheme->row_codes(planes_, shape_, row, indices_);
    for (int64_t column = 0; column < grid.columns; ++column) {
      const ExactWeight& weight = exact_[static_cast<size_t>(column)];
      const auto block =
          static_cast<size_t>(row / grid.row_block * grid.block_columns() + column / grid.column_block);
      int8_t& code = grid.codes[static_cast<size_t>(row * grid.columns + column)];
      grid.scales[block] = static_cast<float>(weight.scale);
      const int index = indices_[static_cast<size_t>(column)];
      if (grid.element) {
        code = static_cast<int8_t>(index);
      } else if (floating) {
        code = static_cast<int8_t>(weight.code);
        if (column % grid.column_block == 0) grid.zeros[block] = integer_zero(weight, grid.place(block));
      } else {
        const int offset = tensor_.scheme->params().code_min < 0 ? 0 : 1 << (grid.bits - 1);
        const int value = static_cast<int>(values_.at(static_cast<size_t>(index)));
        code = static_cast<int8_t>(value - offset);
        grid.zeros[block] = value - static_cast<int>(weight.code) - offset;
      }
    }
  }

 private:
  const SchemeTensor& tensor_;
  WeightShape shape_;
  Planes planes_;
  std::vector<double> values_;
  std::vector<ExactWeight> exact_;
  std::vector<int> indices_;
};

GridWeight grid_of_scheme(const SchemeTensor& tensor) {
  const Scheme& scheme = *tensor.scheme;
  const SchemeParams& params = scheme.params();
  if (!is_affine_family(scheme.family()))
    no_grid("weights of " + std::string(scheme.name()) +
            " are not codes with scales and integer zero points");
  if (tensor.activation != kWeightOnly)
    no_grid("it asks for quantized x (" + std::string(tensor.activation.name()) +
            "), which OUT could not record");
  GridWeight grid;
  grid.rows = tensor.n;
  grid.columns = tensor.k;
  grid.dtype = tensor.dtype;
  grid.bits = params.bits;
  if (scheme.family().starts_with("fp8")) grid.element = params.element;
  grid.row_block = params.group_rows ? params.group_rows : tensor.n;
  grid.column_block = scheme.group() ? scheme.group() : tensor.k;
  size_grid(grid);
  SchemeRows rows(tensor);
  for (int64_t row = 0; row < grid.rows; ++row) rows.read(row, grid);
  return grid;
}

GridWeight grid_of_tensor(const NamedTensor& tensor) {
  if (!tensor.foreign.empty()) no_grid("of " + std::string(tensor.foreign) + ", which qcts cannot read");
  if (tensor.coded) return grid_of_coded(*tensor.coded);
  if (tensor.shape.size() != 2) no_grid("a quantized weight that is not two-dimensional");
  if (tensor.scheme.empty()) no_grid("this " + tensor.type + " does not belong to a scheme");
  if (!tensor.layout) no_grid("the file does not say which CPU packed it");
  const std::optional<SchemeTensor> made = scheme_tensor(tensor);
  if (!made) no_grid("this " + tensor.type + " does not belong to a scheme");
  return grid_of_scheme(*made);
}

}  // namespace

bool GridWeight::has_zeros() const {
  return std::ranges::any_of(zeros, [](int zero) { return zero != 0; });
}

std::string GridWeight::place(size_t block) const {
  const auto across = static_cast<size_t>(block_columns());
  const std::string row = "row " + std::to_string(block / across * static_cast<size_t>(row_block));
  return across == 1 ? row : row + ", group " + std::to_string(block % across);
}

GridWeight grid_of(const NamedTensor& tensor) {
  try {
    GridWeight grid = grid_of_tensor(tensor);
    require_finite(grid);
    return grid;
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(tensor.name + ": " + error.what());
  }
}

}  // namespace qcts
