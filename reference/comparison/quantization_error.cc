// SPDX-License-Identifier: BSD-3-Clause
#include "reference/comparison/quantization_error.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "reference/comparison/ties.h"
#include "reference/comparison/words.h"
#include "reference/dialects/dense.h"
#include "reference/dialects/input_scale.h"
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

// A weight as its layer applies it to x, as values and as the tensor that holds them without the scale of x.
struct Weight {
  Tensor tensor;
  std::vector<double> factors;  // of the columns; empty if the layer does not scale x
  std::string refusal;          // why there is no such weight; else empty

  std::vector<double> values() const {
    std::vector<double> values = values_of(tensor);
    if (!factors.empty()) scale_columns(values, factors);
    return values;
  }
};

Weight weight_of(const NamedTensor& tensor, const std::string& cpu_layout) {
  Weight weight;
  std::optional<Tensor> dense = dense_of(tensor, cpu_layout);
  if (!dense) {
    weight.refusal = why_not_dense(tensor);
    return weight;
  }
  weight.tensor = std::move(*dense);
  if (std::optional<InputScale> scale = input_scale(tensor)) {
    weight.refusal = scale->misfit;
    weight.factors = std::move(scale->factors);
  }
  return weight;
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

// The codes stand for the original without the scale of x.
std::vector<double> without_factors(std::vector<double> values, const std::vector<double>& factors) {
  for (size_t i = 0; i < values.size(); ++i) values[i] /= factors[i % factors.size()];
  return values;
}

void count_codes(const NamedTensor& tensor, const std::string& cpu_layout, const std::vector<double>& dense,
                 const std::vector<double>& quantized, const std::vector<double>& factors,
                 LayerError& layer) {
  const std::optional<SchemeTensor> held = scheme_tensor(tensor, cpu_layout);
  if (!held) return;
  const WeightShape shape = {held->dtype, held->n, held->k};
  layer.scheme = held->scheme->name();
  if (static_cast<size_t>(shape.n * shape.k) != dense.size()) return;
  const Planes planes =
      held->layout == kPlain ? held->planes : held->scheme->unpack(held->planes, shape, held->layout);
  CodeCounter(*held->scheme, planes, shape, layer)
      .count(factors.empty() ? dense : without_factors(dense, factors));
  count_groups(*held->scheme, shape, dense, quantized, layer);
}

LayerError layer_error(const NamedTensor& tensor, const Weight& original, const Weight& dequantized,
                       const std::string& cpu_layout) {
  LayerError layer;
  layer.name = tensor.name;
  layer.shape = dequantized.tensor.shape;
  layer.scales_input = !dequantized.factors.empty();
  const std::vector<double> dense = original.values(), quantized = dequantized.values();
  const int64_t columns = layer.shape.empty() ? 1 : std::max<int64_t>(1, layer.shape.back());
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
  count_codes(tensor, cpu_layout, dense, quantized, dequantized.factors, layer);
  return layer;
}

// Compares two checkpoints by name, in both directions.
class ErrorFinder {
 public:
  ErrorFinder(const Checkpoint& dense, const Checkpoint& quantized, const std::string& dense_cpu_layout,
              const std::string& quantized_cpu_layout)
      : dense_(dense),
        quantized_(quantized),
        originals_(dense, quantized),
        counterparts_(quantized, dense),
        dense_cpu_layout_(dense_cpu_layout),
        quantized_cpu_layout_(quantized_cpu_layout) {}

  QuantizationErrors find() && {
    for (const NamedTensor& tensor : quantized_.tensors) compare(tensor);
    for (const NamedTensor& tensor : dense_.tensors)
      if (counterparts_.find(tensor) == nullptr) found_.missing.push_back(tensor.name);
    return std::move(found_);
  }

 private:
  void compare(const NamedTensor& tensor) {
    const auto skip = [&](const std::string& why) {
      found_.not_compared.push_back(tensor.name + ": " + why);
    };
    const Weight dequantized = weight_of(tensor, quantized_cpu_layout_);
    if (!dequantized.refusal.empty()) return skip(dequantized.refusal);
    const NamedTensor* original = originals_.find(tensor);
    if (original == nullptr) return skip("the original has no tensor of this name");
    const Weight weight = weight_of(*original, dense_cpu_layout_);
    const DType dtype = dequantized.tensor.dtype, original_dtype = weight.tensor.dtype;
    if (!weight.refusal.empty())
      skip(weight.refusal);
    else if (weight.tensor.shape != dequantized.tensor.shape)
      skip("the original has the shape " + shape_words(weight.tensor.shape) + ", this " +
           shape_words(dequantized.tensor.shape));
    else if (is_plain(tensor) && is_same(weight.tensor, dequantized.tensor))
      ++found_.same;
    else if (!is_weight_type(original_dtype) || !is_weight_type(dtype))
      skip("not floating-point: " + std::string(dtype_name(original_dtype)) + " and " +
           std::string(dtype_name(dtype)));
    else
      add(tensor, weight, dequantized);
  }

  void add(const NamedTensor& tensor, const Weight& weight, const Weight& dequantized) {
    LayerError error = layer_error(tensor, weight, dequantized, quantized_cpu_layout_);
    if (is_plain(tensor)) {
      found_.unquantized.push_back(std::move(error));
      return;
    }
    found_.all.add(error.sums);
    found_.layers.push_back(std::move(error));
  }

  static bool is_same(const Tensor& a, const Tensor& b) {
    std::vector<std::byte> left, right;
    return a.dtype == b.dtype && std::ranges::equal(row_major_view(a, left), row_major_view(b, right));
  }

  const Checkpoint &dense_, &quantized_;
  const TensorsByName originals_, counterparts_;
  const std::string &dense_cpu_layout_, &quantized_cpu_layout_;
  QuantizationErrors found_;
};

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
  return ErrorFinder(dense, quantized, dense_cpu_layout, quantized_cpu_layout).find();
}

}  // namespace qcts
