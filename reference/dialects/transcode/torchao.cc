// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/transcode/torchao.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

[[noreturn]] void no_class(const std::string& why) { throw std::invalid_argument(why); }

std::string blocks_text(const GridWeight& weight) {
  return std::to_string(weight.row_block) + " x " + std::to_string(weight.column_block);
}

bool narrow_scales_hold(const GridWeight& weight) {
  return std::ranges::all_of(weight.scales,
                             [&](float scale) { return round_to(weight.dtype, scale) == scale; });
}

// A scale of the whole tensor is one of each row.
GridWeight by_rows(const GridWeight& weight) {
  GridWeight rows = weight;
  rows.row_block = 1;
  rows.scales.assign(static_cast<size_t>(weight.rows), weight.scales.at(0));
  rows.zeros.assign(static_cast<size_t>(weight.rows), weight.zeros.at(0));
  return rows;
}

std::string integer_scheme(const GridWeight& weight) {
  const bool rows = weight.block_columns() == 1;
  return "intx_b" + std::to_string(weight.bits) +
         (rows ? "_axis" : "_g" + std::to_string(weight.column_block)) +
         (narrow_scales_hold(weight) ? "" : "_s32") + (weight.has_zeros() ? "_asym" : "_sym");
}

std::string float_scheme(const GridWeight& weight) {
  const bool rows = weight.block_columns() == 1;
  if (weight.row_block == 1) return rows ? "fp8_row" : "fp8_e4m3_g" + std::to_string(weight.column_block);
  if (rows && weight.block_rows() == 1) return "fp8_e4m3_tensor";
  return weight.row_block == weight.column_block ? "fp8_e4m3_block" + std::to_string(weight.row_block) : "";
}

void require_torchaos_zeros(const GridWeight& weight) {
  for (size_t block = 0; block < weight.zeros.size(); ++block)
    if (weight.zeros[block] < -128 || weight.zeros[block] > 127)
      no_class(weight.place(block) + ": the zero point " + std::to_string(weight.zeros[block]) +
               " does not fit int8");
}

void require_order(const GridWeight& weight) {
  for (size_t column = 0; column < weight.group_of.size(); ++column) {
    const auto own = static_cast<int32_t>(static_cast<int64_t>(column) / weight.column_block);
    if (weight.group_of[column] != own)
      no_class("row 0, group " + std::to_string(weight.group_of[column]) + ": it holds column " +
               std::to_string(column) + ", and torchao's groups are columns in their order");
  }
}

void fill(Plane& plane, const GridWeight& weight) {
  if (plane.name == "qdata") {
    std::memcpy(plane.bytes.data(), weight.codes.data(), weight.codes.size());
  } else if (plane.name == "scale") {
    for (size_t i = 0; i < weight.scales.size(); ++i)
      store_float(plane.dtype, plane.bytes, i, static_cast<double>(weight.scales[i]));
  } else {
    for (size_t i = 0; i < weight.zeros.size(); ++i) plane.bytes[i] = static_cast<std::byte>(weight.zeros[i]);
  }
}

void require_size(const Plane& plane, const GridWeight& weight) {
  const size_t count = plane.name == "qdata" ? weight.codes.size() : weight.scales.size();
  if (plane.bytes.size() != count * dtype_bytes(plane.dtype))
    throw std::logic_error("plane " + plane.name + " does not match the weight in size");
}

}  // namespace

SchemeTensor torchao_weight(const GridWeight& given) {
  require_order(given);
  const bool whole = !given.element && given.row_block > 1 && given.block_rows() * given.block_columns() == 1;
  const GridWeight weight = whole ? by_rows(given) : given;
  require_torchaos_zeros(weight);
  std::string name;
  if (weight.element)
    name = weight.element == DType::float8_e4m3fn ? float_scheme(weight) : "";
  else if (weight.row_block == 1)
    name = integer_scheme(weight);
  const Scheme* scheme = find_scheme(name);
  const WeightShape shape = {weight.dtype, weight.rows, weight.columns};
  if (scheme == nullptr)
    no_class("row 0: no class of torchao is read here whose scales are for " + blocks_text(weight) +
             " elements");
  if (const std::optional<std::string> why = scheme->refusal(shape)) no_class(*why);
  SchemeTensor made;
  made.scheme = scheme;
  made.layout = kPlain;
  made.dtype = weight.dtype;
  made.n = weight.rows;
  made.k = weight.columns;
  made.planes = make_planes(scheme->plane_specs(shape));
  for (Plane& plane : made.planes) {
    require_size(plane, weight);
    fill(plane, weight);
  }
  made.dialect = "torchao_v2";
  return made;
}

}  // namespace qcts
