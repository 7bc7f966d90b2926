// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <map>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "reference/numerics/soft_float.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {
namespace {

std::optional<DType> stage(uint32_t dtype, DType x) {
  switch (dtype) {
    case QCTS_LIKE_X:
      return x;
    case QCTS_NONE:
      return std::nullopt;
    case QCTS_F32:
      return DType::float32;
    case QCTS_F64:
      return DType::float64;
    case QCTS_F16:
      return DType::float16;
    case QCTS_BF16:
      return DType::bfloat16;
    case QCTS_F8_E4M3FN:
      return DType::float8_e4m3fn;
    case QCTS_F8_E5M2:
      return DType::float8_e5m2;
    case QCTS_I32:
      return DType::int32;
    default:
      throw ProviderFault("its numerics declare element type " + std::to_string(dtype) +
                          ", which nothing can round to");
  }
}

std::optional<FusedSums> fused_of(const qcts_fused_sums& declared) {
  if (declared.terms == 0 && declared.fraction_bits == 0 && declared.result_bits == 0 &&
      declared.promote_every == 0)
    return std::nullopt;
  static constexpr uint32_t kLargest = 1u << 30;
  const auto number = [](uint32_t value) { return static_cast<int>(std::min(value, kLargest)); };
  const FusedSums fused = {number(declared.terms), number(declared.fraction_bits),
                           number(declared.result_bits), number(declared.promote_every)};
  try {
    check_fused_sums(fused);
  } catch (const std::invalid_argument& error) {
    throw ProviderFault("its fused_sums declare " + std::string(error.what()) + ", which is not possible");
  }
  return fused;
}

std::string_view text_of_weights(std::span<const ExactWeight> row) {
  return {reinterpret_cast<const char*>(row.data()), row.size_bytes()};
}

// Returns, for each of `count` items, the first one that has an equal key.
template <typename Key>
std::vector<size_t> first_equals(size_t count, Key key_of) {
  std::map<decltype(key_of(0)), size_t> first;
  std::vector<size_t> found(count);
  for (size_t i = 0; i < count; ++i) found[i] = first.try_emplace(key_of(i), i).first->second;
  return found;
}

int64_t group_of(const KernelInput& input) { return input.scheme ? input.scheme->group() : 0; }

DType scale_dtype(const KernelInput& input) {
  for (size_t i = 1; i < input.planes.size(); ++i)
    if (is_float(input.planes[i].dtype)) return input.planes[i].dtype;
  return DType::float32;
}

}  // namespace

LinearStages declared_stages(const qcts_kernel& kernel, DType x) {
  LinearStages stages;
  if (kernel.op != QCTS_OP_LINEAR) return stages;
  const qcts_numerics& numerics = kernel.numerics;
  stages.x_cast = stage(numerics.x_cast, x);
  stages.scale_cast = stage(numerics.scale_cast, x);
  stages.weight_cast = stage(numerics.weight_cast, x);
  stages.product_cast = stage(numerics.product_cast, x);
  // If no accumulator is declared, use the strictest that a float kernel can meet.
  stages.accumulator = stage(numerics.accumulator, x).value_or(DType::float32);
  stages.partial_cast = stage(numerics.partial_cast, x);
  stages.output_cast = stage(numerics.output_cast, x);
  stages.flush_subnormals = numerics.flags & QCTS_NUM_FLUSH_SUBNORMALS;
  stages.scale_after_sum = numerics.flags & QCTS_NUM_SCALE_AFTER_SUM;
  stages.bias_in_output_cast = numerics.flags & QCTS_NUM_BIAS_IN_OUTPUT_CAST;
  stages.fused = fused_of(kernel.fused_sums);
  return stages;
}

LinearReference::LinearReference(const KernelInput& input, bool with_rows) : input_(input) {
  const size_t n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  if (with_rows) read_rows();
  if (input.x.size() != static_cast<size_t>(input.m) * k * dtype_bytes(input.x_dtype))
    throw std::runtime_error("x has " + std::to_string(input.x.size()) + " bytes, want m * k elements");
  if (input.activation == kWeightOnly)
    x_ = load_doubles(input.x_dtype, input.x);
  else
    read_quantized_x();
  for (int64_t m = 0; m < input.m; ++m) rows_of_x_.push_back(oracle_x(x(m)));
  bias_.resize(n);
  if (!input.bias.empty())
    for (size_t r = 0; r < n; ++r) bias_[r] = load_float(input.bias_dtype, input.bias, r);
}

// A large weight repeats rows (suites/inputs/layer_input.h), and each is kept once.
void LinearReference::read_rows() {
  const size_t n = static_cast<size_t>(input_.weight.n), k = static_cast<size_t>(input_.weight.k);
  std::vector<ExactWeight> row(k);
  std::unordered_multimap<size_t, size_t> places;  // by the hash of a row
  for (size_t r = 0; r < n; ++r) {
    input_.scheme->exact_row(input_.planes, input_.weight, static_cast<int64_t>(r), row);
    const std::string_view bytes = text_of_weights(row);
    const size_t hash = std::hash<std::string_view>{}(bytes), count = weights_.size() / k;
    const auto [first, last] = places.equal_range(hash);
    const auto same = std::find_if(first, last, [&](const auto& place) {
      return text_of_weights({weights_.data() + place.second * k, k}) == bytes;
    });
    place_of_row_.push_back(same == last ? count : same->second);
    if (same != last) continue;
    places.emplace(hash, count);
    weights_.insert(weights_.end(), row.begin(), row.end());
  }
}

void LinearReference::read_quantized_x() {
  const Planes planes =
      input_.scheme->quantize_activation(input_.x_matrix(), input_.activation, input_.planes);
  const size_t k = static_cast<size_t>(input_.weight.k);
  x_.resize(static_cast<size_t>(input_.m) * k);
  const auto has = [&](std::string_view name) {
    return std::any_of(planes.begin(), planes.end(), [&](const Plane& p) { return p.name == name; });
  };
  if (has("scale")) offsets_.resize(static_cast<size_t>(input_.m));
  const auto of_row = [&](const Plane& plane, size_t row) {
    const size_t index = plane.shape.front() == 1 ? 0 : row;
    if (plane.dtype == DType::int8) return static_cast<double>(static_cast<int8_t>(plane.bytes[index]));
    if (plane.dtype == DType::uint8) return static_cast<double>(std::to_integer<int>(plane.bytes[index]));
    return load_float(plane.dtype, plane.bytes, index);
  };
  for (size_t m = 0; m < static_cast<size_t>(input_.m); ++m) {
    input_.scheme->exact_activation(planes, input_.x_matrix(), input_.activation, static_cast<int64_t>(m),
                                    {x_.data() + m * k, k});
    if (has("zero_point"))
      offsets_[m] = of_row(plane(planes, "zero_point"), m) * of_row(plane(planes, "scale"), m);
  }
}

std::span<const ExactWeight> LinearReference::row(int64_t n) const {
  const size_t k = static_cast<size_t>(input_.weight.k);
  return {weights_.data() + place_of_row_[static_cast<size_t>(n)] * k, k};
}

std::span<const double> LinearReference::x(int64_t m) const {
  const size_t k = static_cast<size_t>(input_.weight.k);
  return {x_.data() + static_cast<size_t>(m) * k, k};
}

LinearOracle LinearReference::oracle(const OracleWeights& weights, int64_t m, int64_t n) const {
  return linear_oracle(weights, rows_of_x_[static_cast<size_t>(m)], bias_[static_cast<size_t>(n)],
                       offsets_.empty() ? std::nullopt : std::optional(offsets_[static_cast<size_t>(m)]));
}

std::vector<double> LinearReference::sums() const {
  std::vector<ExactWeight> row(static_cast<size_t>(input_.weight.k));
  std::vector<double> y(static_cast<size_t>(input_.m * input_.weight.n));
  for (int64_t n = 0; n < input_.weight.n; ++n) {
    input_.scheme->exact_row(input_.planes, input_.weight, n, row);
    const OracleWeights weights = oracle_weights(row, group_of(input_));
    for (int64_t m = 0; m < input_.m; ++m)
      y[static_cast<size_t>(m * input_.weight.n + n)] = oracle(weights, m, n).y;
  }
  return y;
}

Bounded LinearReference::bounded(const OracleWeights& weights, int64_t m, int64_t n,
                                 const LinearStages& stages) const {
  const bool quantized = !offsets_.empty();
  const LinearOracle oracle = this->oracle(weights, m, n);
  // The oracle's x is code times scale, unrounded; a kernel that casts it to x's dtype rounds it.
  const LinearBound bound = linear_bound(
      oracle, stages, {quantized ? DType::float64 : input_.x_dtype, scale_dtype(input_), input_.y_dtype});
  return {oracle.y, bound.low, bound.high, bound.error};
}

Bounded LinearReference::bounded(std::span<const ExactWeight> row, int64_t m, int64_t n,
                                 const LinearStages& stages) const {
  return bounded(oracle_weights(row, group_of(input_)), m, n, stages);
}

// Equal rows of x with equal rows of the weight and equal biases have equal bounds, which are computed once.
std::vector<Bounded> LinearReference::bounds(const LinearStages& stages) const {
  const size_t n = static_cast<size_t>(input_.weight.n), k = static_cast<size_t>(input_.weight.k);
  std::vector<OracleWeights> rows;
  for (size_t place = 0; place < weights_.size() / k; ++place)
    rows.push_back(oracle_weights({weights_.data() + place * k, k}, group_of(input_)));
  const std::vector<size_t> columns = first_equals(
      n, [&](size_t r) { return std::pair(place_of_row_[r], std::bit_cast<uint64_t>(bias_[r])); });
  const std::vector<size_t> rows_of_x = first_equals(static_cast<size_t>(input_.m), [&](size_t m) {
    return std::pair(std::string_view(reinterpret_cast<const char*>(x_.data() + m * k), k * sizeof(double)),
                     offsets_.empty() ? 0 : std::bit_cast<uint64_t>(offsets_[m]));
  });
  std::vector<Bounded> all(rows_of_x.size() * n);
  for (size_t m = 0; m < rows_of_x.size(); ++m)
    for (size_t r = 0; r < n; ++r)
      all[m * n + r] = rows_of_x[m] != m ? all[rows_of_x[m] * n + r]
                       : columns[r] != r ? all[m * n + columns[r]]
                                         : bounded(rows[place_of_row_[r]], static_cast<int64_t>(m),
                                                   static_cast<int64_t>(r), stages);
  return all;
}

// For goldens of torchao 0.5.0 to 0.17.0 with no kernel for this x and weight, _quantized_linear_op of
// AffineQuantizedTensor dequantizes both.
LinearStages recorded_stages(const TestVector& test_vector) {
  const KernelInput& input = test_vector.input;
  if (test_vector.recorded_dense)
    return {.x_cast = input.y_dtype, .weight_cast = input.y_dtype, .product_cast = DType::float32};
  return input.scheme->recorded_stages(input.weight, input.activation, input.y_dtype);
}

}  // namespace qcts
