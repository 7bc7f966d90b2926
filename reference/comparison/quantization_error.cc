// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/quantization_error.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "reference/comparison/words.h"
#include "reference/dialects/dense.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

bool is_weight_type(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<std::byte> scratch;
  const auto bytes = row_major_view(tensor, scratch);
  return load_doubles(tensor.dtype, bytes);
}

// Both ends of a set of codes, with the distance to the next code.
struct CodeRange {
  int least = 0, greatest = 0;  // indices of CodeSet::values
  double least_gap = 0, greatest_gap = 0;
};

// Returns nullopt for fewer than two distinct finite codes.
std::optional<CodeRange> range_of(const CodeSet& set) {
  std::vector<std::pair<double, int>> order;
  for (size_t i = 0; i < set.values.size(); ++i)
    if (std::isfinite(set.values[i])) order.emplace_back(set.values[i], static_cast<int>(i));
  std::ranges::sort(order);
  const auto duplicates = std::ranges::unique(order, {}, &std::pair<double, int>::first);
  order.erase(duplicates.begin(), duplicates.end());
  if (order.size() < 2) return std::nullopt;
  const size_t last = order.size() - 1;
  return CodeRange{order[0].second, order[last].second, order[1].first - order[0].first,
                   order[last].first - order[last - 1].first};
}

// Counts the codes of one weight in layout "plain".
class CodeCounter {
 public:
  CodeCounter(const Scheme& scheme, const Planes& planes, const WeightShape& shape, LayerError& layer)
      : scheme_(scheme), planes_(planes), shape_(shape), layer_(layer), range_(range_of(scheme.codes())) {}

  void count(const std::vector<double>& dense) {
    if (!range_) return;
    layer_.has_codes = true;
    const auto k = static_cast<size_t>(shape_.k);
    std::vector<ExactWeight> exact(k);
    std::vector<int> codes(k);
    for (int64_t row = 0; row < shape_.n; ++row) {
      scheme_.exact_row(planes_, shape_, row, exact);
      scheme_.row_codes(planes_, shape_, row, codes);
      for (size_t i = 0; i < k; ++i)
        if (codes[i] >= 0) count(codes[i], exact[i], dense[static_cast<size_t>(row) * k + i]);
    }
  }

 private:
  void count(int code, const ExactWeight& exact, double dense) {
    ++layer_.codes;
    const bool greatest = code == range_->greatest;
    if (!greatest && code != range_->least) return;
    ++layer_.saturated;
    const double step = std::fabs(exact.scale) * (greatest ? range_->greatest_gap : range_->least_gap);
    const bool upwards = greatest == (exact.scale >= 0);
    const double beyond = upwards ? dense - (exact.product + exact.zero) : exact.product + exact.zero - dense;
    if (beyond > step / 2) ++layer_.clipped;
  }

  const Scheme& scheme_;
  const Planes& planes_;
  const WeightShape& shape_;
  LayerError& layer_;
  const std::optional<CodeRange> range_;
};

void count_groups(const Scheme& scheme, const WeightShape& shape, const std::vector<double>& dense,
                  const std::vector<double>& quantized, LayerError& layer) {
  const int64_t columns = scheme.group() == 0 ? shape.k : scheme.group();
  const int64_t rows = scheme.params().group_rows == 0 ? shape.n : scheme.params().group_rows;
  for (int64_t top = 0; top < shape.n; top += rows)
    for (int64_t left = 0; left < shape.k; left += columns) {
      bool zero = true, lost = false;
      for (int64_t row = top; row < std::min(shape.n, top + rows) && zero; ++row)
        for (int64_t column = left; column < std::min(shape.k, left + columns) && zero; ++column) {
          const auto at = static_cast<size_t>(row * shape.k + column);
          zero = quantized[at] == 0;
          lost = lost || dense[at] != 0;
        }
      ++layer.groups;
      layer.zero_groups += zero;
      layer.lost_groups += zero && lost;
    }
}

void count_codes(const NamedTensor& tensor, const std::string& cpu_layout, const std::vector<double>& dense,
                 const std::vector<double>& quantized, LayerError& layer) {
  const std::optional<SchemeTensor> held = scheme_tensor(tensor, cpu_layout);
  if (!held) return;
  const WeightShape shape = {held->dtype, held->n, held->k};
  layer.scheme = held->scheme->name();
  if (static_cast<size_t>(shape.n * shape.k) != dense.size()) return;
  const Planes planes =
      held->layout == kPlain ? held->planes : held->scheme->unpack(held->planes, shape, held->layout);
  CodeCounter(*held->scheme, planes, shape, layer).count(dense);
  count_groups(*held->scheme, shape, dense, quantized, layer);
}

LayerError layer_error(const NamedTensor& tensor, const Tensor& original, const Tensor& dequantized,
                       const std::string& cpu_layout) {
  LayerError layer;
  layer.name = tensor.name;
  layer.shape = dequantized.shape;
  const std::vector<double> dense = values_of(original), quantized = values_of(dequantized);
  const int64_t columns = dequantized.shape.empty() ? 1 : std::max<int64_t>(1, dequantized.shape.back());
  for (size_t i = 0; i < dense.size(); ++i) {
    if (!std::isfinite(dense[i]) || !std::isfinite(quantized[i])) {
      ++layer.sums.non_finite;
      continue;
    }
    const double error = std::fabs(quantized[i] - dense[i]);
    ++layer.sums.elements;
    layer.sums.signal += dense[i] * dense[i];
    layer.sums.noise += error * error;
    if (error <= layer.sums.max_error) continue;
    layer.sums.max_error = error;
    layer.max_row = static_cast<int64_t>(i) / columns;
    layer.max_column = static_cast<int64_t>(i) % columns;
  }
  count_codes(tensor, cpu_layout, dense, quantized, layer);
  return layer;
}

}  // namespace

std::optional<double> ErrorSums::sqnr_db() const {
  if (noise == 0) return std::nullopt;
  return 10 * std::log10(signal / noise);
}

void ErrorSums::add(const ErrorSums& other) {
  signal += other.signal;
  noise += other.noise;
  max_error = std::max(max_error, other.max_error);
  elements += other.elements;
  non_finite += other.non_finite;
}

QuantizationErrors quantization_errors(const Checkpoint& dense, const Checkpoint& quantized,
                                       const std::string& dense_cpu_layout,
                                       const std::string& quantized_cpu_layout) {
  QuantizationErrors found;
  std::unordered_map<std::string_view, const NamedTensor*> originals;
  for (const NamedTensor& tensor : dense.tensors) originals.emplace(tensor.name, &tensor);
  for (const NamedTensor& tensor : quantized.tensors) {
    if (is_plain(tensor)) continue;
    const auto skip = [&](const std::string& why) { found.not_compared.push_back(tensor.name + ": " + why); };
    const std::optional<Tensor> dequantized = dense_of(tensor, quantized_cpu_layout);
    const auto original = originals.find(tensor.name);
    if (!dequantized) {
      skip(why_not_dense(tensor));
      continue;
    }
    if (original == originals.end()) {
      skip("the original has no tensor of this name");
      continue;
    }
    const std::optional<Tensor> weight = dense_of(*original->second, dense_cpu_layout);
    if (!weight)
      skip(why_not_dense(*original->second));
    else if (!is_weight_type(weight->dtype) || !is_weight_type(dequantized->dtype))
      skip("not floating-point: " + std::string(dtype_name(weight->dtype)) + " and " +
           std::string(dtype_name(dequantized->dtype)));
    else if (weight->shape != dequantized->shape)
      skip("the original has the shape " + shape_words(weight->shape) + ", this " +
           shape_words(dequantized->shape));
    else
      found.all.add(
          found.layers.emplace_back(layer_error(tensor, *weight, *dequantized, quantized_cpu_layout)).sums);
  }
  return found;
}

}  // namespace qcts
