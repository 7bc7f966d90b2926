// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/transcode/kernel_planes.h"

#include <algorithm>
#include <stdexcept>

#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/transcode/grid_weight.h"
#include "reference/dialects/transcode/torchao.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

[[noreturn]] void no_planes(const std::string& why) { throw std::invalid_argument(why); }

bool is_integer(CodeKind kind) {
  return kind == CodeKind::unsigned_integer || kind == CodeKind::offset_integer ||
         kind == CodeKind::signed_integer;
}

bool has_power_scales(const ScaleMatrix& scales) {
  return !scales.nested &&
         (scales.values.dtype == DType::uint8 || scales.values.dtype == DType::float8_e8m0fnu);
}

bool has_blocks_of(int64_t columns, const CodedWeight& weight) {
  return weight.scales.row_block == 1 && weight.scales.column_block == columns && !weight.group_of;
}

std::string_view mx_meaning(CodeKind kind) {
  switch (kind) {
    case CodeKind::float8_e4m3:
      return "mxfp8_e4m3";
    case CodeKind::float6_e2m3:
      return "mxfp6_e2m3";
    case CodeKind::float4_e2m1:
      return "mxfp4";
    default:
      return "";
  }
}

const Scheme* scheme_of_meaning(std::string_view meaning) {
  const auto found = std::ranges::find(schemes(), meaning, &Scheme::meaning);
  return found == schemes().end() ? nullptr : *found;
}

// Returns the scheme of small floats in blocks along a row, or nullptr.
const Scheme* block_scheme(const CodedWeight& weight) {
  const ScaleMatrix& scales = weight.scales;
  if (has_power_scales(scales))
    return has_blocks_of(32, weight) && !scales.global ? scheme_of_meaning(mx_meaning(weight.codes.kind))
                                                       : nullptr;
  if (weight.codes.kind == CodeKind::float4_e2m1 && scales.values.dtype == DType::float8_e4m3fn &&
      has_blocks_of(16, weight))
    return find_scheme(scales.global ? "nvfp4_two_level" : "nvfp4_one_level");
  return nullptr;
}

// Two codes of four bits share a byte, the first one in its low half. Other codes have a byte each.
std::vector<std::byte> code_bytes(const CodedWeight& weight) {
  const int bits = weight.codes.bits;
  const int64_t negative_zero = int64_t{1} << (bits - 1);
  std::vector<int64_t> fields = fields_of(weight.codes);
  if (weight.plain_zero) std::ranges::replace(fields, negative_zero, int64_t{0});
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < fields.size(); i += bits == 4 ? 2 : 1)
    bytes.push_back(static_cast<std::byte>(bits == 4 ? fields[i] | fields[i + 1] << 4 : fields[i]));
  return bytes;
}

// Returns the factor by which the scales are multiplied, as four bytes.
std::vector<std::byte> global_bytes(const ScaleMatrix& scales) {
  const float global = read_floats(*scales.global).at(0);
  const float factor = scales.divides_by_global ? 1 / global : global;
  if (scales.divides_by_global && static_cast<double>(factor) * static_cast<double>(global) != 1)
    no_planes("its scales are divided by a global scale, whose inverse is no float32");
  std::vector<std::byte> bytes(4);
  store_float(DType::float32, bytes, 0, static_cast<double>(factor));
  return bytes;
}

SchemeTensor block_planes(const CodedWeight& weight, const Scheme& scheme) {
  SchemeTensor made;
  made.scheme = &scheme;
  made.layout = kPlain;
  made.dtype = weight.dtype;
  made.n = weight.rows;
  made.k = weight.columns;
  const WeightShape shape = {made.dtype, made.n, made.k};
  if (const std::optional<std::string> why = scheme.refusal(shape)) no_planes(*why);
  if (!weight.codes.lines_are_rows || weight.scales.transposed) no_planes("its codes are stored by column");
  made.planes = make_planes(scheme.plane_specs(shape));
  for (Plane& plane : made.planes) {
    std::vector<std::byte> bytes = plane.name == "qdata"   ? code_bytes(weight)
                                   : plane.name == "scale" ? row_major_bytes(weight.scales.values)
                                                           : global_bytes(weight.scales);
    if (bytes.size() != plane.bytes.size())
      throw std::logic_error("plane " + plane.name + " does not match the weight in size");
    plane.bytes = std::move(bytes);
  }
  return made;
}

SchemeTensor planes_of(const NamedTensor& tensor) {
  const CodedWeight& weight = *tensor.coded;
  if (const Scheme* scheme = block_scheme(weight); scheme != nullptr && !weight.biases && weight.factor == 1)
    return block_planes(weight, *scheme);
  if (weight.codes.kind == CodeKind::table)
    no_planes("its codes are those of a table, with scales that no scheme has");
  if (weight.biases) no_planes("its codes have a bias for each group, which no scheme has");
  if (weight.factor != 1) no_planes("its product of code and scale has one more factor, which no scheme has");
  if (!is_integer(weight.codes.kind) && weight.codes.kind != CodeKind::float8_e4m3)
    no_planes("no scheme has codes of " + std::to_string(weight.codes.bits) + "-bit floats with such scales");
  return torchao_weight(grid_of(tensor));
}

// Compares with the file what the planes mean.
void require_same(const CodedWeight& weight, const SchemeTensor& made) {
  const WeightShape shape = {made.dtype, made.n, made.k};
  std::vector<ExactWeight> exact(static_cast<size_t>(made.k));
  for_each_coded_row(weight, [&](int64_t row, std::span<const CodedElement> elements) {
    made.scheme->exact_row(made.planes, shape, row, exact);
    for (size_t k = 0; k < exact.size(); ++k) {
      const double code = static_cast<double>(elements[k].code) - static_cast<double>(elements[k].zero);
      if (exact[k].code != code || static_cast<float>(exact[k].scale) != elements[k].scale ||
          exact[k].zero != 0)
        throw std::logic_error("row " + std::to_string(row) + ", column " + std::to_string(k) +
                               " has another meaning in " + std::string(made.scheme->name()));
    }
  });
}

}  // namespace

SchemeTensor kernel_planes(const NamedTensor& tensor) {
  if (!tensor.coded) throw std::invalid_argument(tensor.name + ": not a weight of another library");
  try {
    SchemeTensor made = planes_of(tensor);
    require_same(*tensor.coded, made);
    return made;
  } catch (const std::invalid_argument& error) {
    // grid_of() names the tensor itself.
    const std::string why = error.what(), name = tensor.name + ": ";
    throw std::invalid_argument(why.starts_with(name) ? why : name + why);
  }
}

}  // namespace qcts
