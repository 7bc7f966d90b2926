// SPDX-License-Identifier: BSD-3-Clause
// Shares of a weight's groups and codes, and its scales.
#include "reference/values/shares.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

// Marks the codes at an end of the range, by index of CodeSet::values; empty if the codes have no ends.
std::vector<bool> code_ends(const Scheme& scheme) {
  const std::vector<double> values = scheme.codes().values;
  const SchemeParams& params = scheme.params();
  const bool integers = params.code_min < params.code_max && scheme.codes().fixed;
  const auto counts = [&](double value) {
    return std::isfinite(value) && (!integers || (value >= params.code_min && value <= params.code_max));
  };
  double least = INFINITY, greatest = -INFINITY;
  for (const double value : values)
    if (counts(value)) least = std::min(least, value), greatest = std::max(greatest, value);
  if (!(least < greatest)) return {};
  std::vector<bool> ends;
  for (const double value : values) ends.push_back(value == least || value == greatest);
  return ends;
}

void count_code_ends(const Scheme& scheme, const Planes& plain, const WeightShape& shape,
                     TensorValues& values) {
  const std::vector<bool> ends = code_ends(scheme);
  if (ends.empty()) return;
  std::vector<int> codes(static_cast<size_t>(shape.k));
  for (int64_t row = 0; row < shape.n; ++row) {
    scheme.row_codes(plain, shape, row, codes);
    for (const int code : codes) {
      if (code < 0) continue;
      ++values.codes;
      values.saturated += ends[static_cast<size_t>(code)];
    }
  }
}

// Returns true if all elements are +0 or -0.
bool is_zero(DType dtype, std::span<const std::byte> elements) {
  const size_t size = dtype_bytes(dtype);
  for (size_t at = 0; at < elements.size(); at += size) {
    if ((elements[at + size - 1] & std::byte{0x7F}) != std::byte{0}) return false;
    for (size_t i = 0; i + 1 < size; ++i)
      if (elements[at + i] != std::byte{0}) return false;
  }
  return true;
}

void count_zero_groups(const Scheme& scheme, const WeightShape& shape, std::span<const std::byte> dense,
                       TensorValues& values) {
  const int64_t columns = scheme.group() == 0 ? shape.k : scheme.group();
  const int64_t rows = scheme.params().group_rows == 0 ? shape.n : scheme.params().group_rows;
  const size_t size = dtype_bytes(shape.dtype);
  for (int64_t top = 0; top < shape.n; top += rows)
    for (int64_t left = 0; left < shape.k; left += columns) {
      bool zero = true;
      for (int64_t row = top; row < std::min(shape.n, top + rows) && zero; ++row)
        zero = is_zero(shape.dtype,
                       dense.subspan(static_cast<size_t>(row * shape.k + left) * size,
                                     static_cast<size_t>(std::min(columns, shape.k - left)) * size));
      ++values.groups;
      values.zero_groups += zero;
    }
}

// The plane that holds one scale per group or row, and the distance of two scales in it.
struct ScalePlane {
  const Plane* plane = nullptr;
  size_t step = 1;
};

ScalePlane scale_plane(const Planes& planes) {
  for (const Plane& plane : planes) {
    if (plane.name == "scale_and_zero") return {&plane, 2};
    if (plane.name == "row_scale" || plane.name == "scales" || plane.name == "super_block_scale_scale")
      return {&plane, 1};
  }
  for (const Plane& plane : planes)
    if (plane.name == "scale") return {&plane, 1};
  return {};
}

void count_scales(const Scheme& scheme, const Planes& plain, const WeightShape& shape, TensorValues& values) {
  const ScalePlane at = scale_plane(plain);
  if (at.plane == nullptr) return;
  std::vector<double> scales;
  const size_t size = dtype_bytes(at.plane->dtype);
  size_t largest = 0;
  for (size_t i = 0; i * size < at.plane->bytes.size(); i += at.step) {
    const double scale = load_float(at.plane->dtype, at.plane->bytes, i);
    if (!(scale > 0) || std::isinf(scale)) continue;
    if (scale > values.largest_scale) values.largest_scale = scale, largest = i;
    scales.push_back(scale);
  }
  values.scales = scales.size();
  if (scales.empty()) return;
  const auto middle = scales.begin() + static_cast<std::ptrdiff_t>(scales.size() / 2);
  std::ranges::nth_element(scales, middle);
  values.median_scale = *middle;
  values.outlier_scales = static_cast<uint64_t>(std::ranges::count_if(
      scales, [&](double scale) { return scale > kOutlierScale * values.median_scale; }));
  values.largest_scale_place = scheme.place(shape, kPlain, at.plane->name, largest * size);
}

}  // namespace

TensorValues tensor_values(const std::string& name, const SchemeTensor& tensor, const Planes& plain,
                           std::span<const std::byte> dense) {
  TensorValues values;
  values.name = name;
  values.scheme = tensor.scheme->name();
  const WeightShape shape = {tensor.dtype, tensor.n, tensor.k};
  if (!tensor.scheme->quantizes_weight()) return values;
  count_code_ends(*tensor.scheme, plain, shape, values);
  count_zero_groups(*tensor.scheme, shape, dense, values);
  count_scales(*tensor.scheme, plain, shape, values);
  return values;
}

}  // namespace qcts
