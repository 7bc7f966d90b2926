// SPDX-License-Identifier: BSD-3-Clause
#include "reference/dialects/transcode/exact_values.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "reference/dialects/classes/coded_weight.h"
#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/dialects/dense.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

std::vector<double> exact_of_coded(const CodedWeight& weight) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(weight.rows * weight.columns));
  for_each_coded_row(weight, [&](int64_t, std::span<const CodedElement> elements) {
    // Without a factor of the weight, which no grid has, the product is exact: it has at most 9 and 24 bits.
    for (const CodedElement& element : elements)
      values.push_back((static_cast<double>(element.code) - static_cast<double>(element.zero)) *
                           static_cast<double>(element.scale) * static_cast<double>(weight.factor) +
                       static_cast<double>(element.bias));
  });
  return values;
}

// Returns the sum, or NaN if it has no exact double. No weight (code - zero) * scale is such a sum.
double exact_sum(const ExactWeight& weight) {
  const double sum = weight.product + weight.zero, part = sum - weight.product;
  const double rest = (weight.product - (sum - part)) + (weight.zero - part);
  return rest == 0 ? sum : std::numeric_limits<double>::quiet_NaN();
}

std::vector<double> exact_of_scheme(const SchemeTensor& tensor) {
  const WeightShape shape = {tensor.dtype, tensor.n, tensor.k};
  const Planes planes =
      tensor.layout == kPlain ? tensor.planes : tensor.scheme->unpack(tensor.planes, shape, tensor.layout);
  std::vector<double> values;
  values.reserve(static_cast<size_t>(tensor.n * tensor.k));
  std::vector<ExactWeight> row(static_cast<size_t>(tensor.k));
  for (int64_t n = 0; n < tensor.n; ++n) {
    tensor.scheme->exact_row(planes, shape, n, row);
    for (const ExactWeight& weight : row) values.push_back(exact_sum(weight));
  }
  return values;
}

std::vector<double> exact_values(const NamedTensor& tensor) {
  if (tensor.coded) return exact_of_coded(*tensor.coded);
  const std::optional<SchemeTensor> made = scheme_tensor(tensor);
  if (!made)
    throw std::invalid_argument(tensor.name + ": this " + tensor.type + " does not belong to a scheme");
  return exact_of_scheme(*made);
}

Tensor dense_values(const NamedTensor& tensor) {
  std::optional<Tensor> dense = dense_of(tensor, "");
  if (!dense) throw std::invalid_argument(tensor.name + ": " + why_not_dense(tensor));
  return std::move(*dense);
}

std::string place_of(size_t index, size_t columns) {
  return "row " + std::to_string(index / columns) + ", column " + std::to_string(index % columns);
}

std::string two_values(double in, double out) {
  std::ostringstream text;
  text.precision(17);
  text << in << " in IN, " << out << " in OUT";
  return text.str();
}

void compare_bits(const Tensor& in, const Tensor& out, WeightComparison& found) {
  const std::vector<std::byte> in_bytes = row_major_bytes(in), out_bytes = row_major_bytes(out);
  const std::vector<double> a = load_doubles(in.dtype, in_bytes), b = load_doubles(out.dtype, out_bytes);
  const size_t width = dtype_bytes(in.dtype);
  found.other_dtype = in.dtype != out.dtype;
  if (found.other_dtype)
    found.first_rounded =
        std::string(dtype_name(in.dtype)) + " in IN, " + std::string(dtype_name(out.dtype)) + " in OUT";
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = found.other_dtype
                          ? a[i] == b[i]
                          : std::memcmp(&in_bytes[i * width], &out_bytes[i * width], width) == 0;
    if (same || found.rounded_otherwise++ > 0) continue;
    found.first_rounded = place_of(i, static_cast<size_t>(in.shape.back())) + ": " + two_values(a[i], b[i]) +
                          (found.other_dtype ? " (" + found.first_rounded + ")" : "");
  }
}

}  // namespace

WeightComparison compare_weights(const NamedTensor& in, const NamedTensor& out) {
  WeightComparison found;
  if (in.shape != out.shape) {
    found.unequal = "another shape";
    return found;
  }
  const std::vector<double> a = exact_values(in), b = exact_values(out);
  found.elements = a.size();
  for (size_t i = 0; i < a.size() && found.unequal.empty(); ++i)
    if (!(a[i] == b[i]))
      found.unequal = place_of(i, static_cast<size_t>(in.shape.back())) + ": " + two_values(a[i], b[i]);
  if (found.unequal.empty()) compare_bits(dense_values(in), dense_values(out), found);
  return found;
}

}  // namespace qcts
