// SPDX-License-Identifier: BSD-3-Clause
// Mistakes in the arithmetic between codes and y: another order of roundings, saturated integer sums.
#include <algorithm>
#include <cmath>
#include <memory>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/answer_hypotheses.h"
#include "suites/judge/diagnosis/plane_values.h"

namespace qcts {
namespace {

double in_float32(double value) { return static_cast<double>(static_cast<float>(value)); }

using Weight = double (*)(const ExactWeight& weight, double of_tensor);

struct WeightArithmetic {
  const char* name;
  bool needs_zero, needs_two_levels;
  Weight value;  // before the rounding to y's type
};
constexpr WeightArithmetic kWeightArithmetic[] = {
    {"product and zero added with one rounding to float32", true, false,
     [](const ExactWeight& w, double) { return in_float32(w.product + w.zero); }},
    {"product rounded to float32 before the zero is added", true, false,
     [](const ExactWeight& w, double) { return in_float32(in_float32(w.product) + w.zero); }},
    {"the code multiplied by its block's scale first, then by the tensor's", false, true,
     [](const ExactWeight& w, double whole) {
       return in_float32(in_float32(w.code * (w.scale / whole)) * whole);
     }},
    {"the code multiplied by the tensor's scale first, then by its block's", false, true,
     [](const ExactWeight& w, double whole) {
       return in_float32(in_float32(w.code * whole) * (w.scale / whole));
     }},
    {"the exact value rounded once, straight to y's type", false, false,
     [](const ExactWeight& w, double) { return w.product + w.zero; }},
};

// The weights of `dequantize`, row-major.
std::vector<ExactWeight> all_weights(const KernelInput& input) {
  const auto k = static_cast<size_t>(input.weight.k);
  std::vector<ExactWeight> all(static_cast<size_t>(input.weight.n) * k);
  for (size_t row = 0; row < static_cast<size_t>(input.weight.n); ++row)
    input.scheme->exact_row(input.planes, input.weight, static_cast<int64_t>(row),
                            std::span(all).subspan(row * k, k));
  return all;
}

void add_weight_arithmetic(const SeenAnswer& seen, std::vector<AnswerHypothesis>& all) {
  const KernelInput& input = seen.input;
  const Plane* const whole = plane_named(input.planes, "per_tensor_scale");
  const double of_tensor = whole ? load_float(whole->dtype, whole->bytes, 0) : 1;
  const bool has_zero = input.scheme->params().zero_point == ZeroPointKind::floating;
  for (const WeightArithmetic& other : kWeightArithmetic) {
    if ((other.needs_zero && !has_zero) || (other.needs_two_levels && !whole)) continue;
    all.push_back({other.name, [&input, &other, of_tensor]() -> PredictElement {
                     const auto weights =
                         std::make_shared<const std::vector<ExactWeight>>(all_weights(input));
                     return [&input, &other, of_tensor, weights](size_t i) {
                       const double y = round_to(input.y_type(), other.value((*weights)[i], of_tensor));
                       return Predicted{y, y};
                     };
                   }});
  }
}

// x in integer codes with a scale for each row or for all rows.
struct IntegerX {
  std::vector<int64_t> codes, zeros;  // [m, k], [m]
  std::vector<double> scales;         // [m]
  bool is_signed = false;
};

std::optional<IntegerX> integer_x(const KernelInput& input) {
  const Planes planes = input.scheme->quantize_activation(input.x_matrix(), input.activation, input.planes);
  const Plane *qdata = plane_named(planes, "qdata"), *scale = plane_named(planes, "scale"),
              *zero = plane_named(planes, "zero_point");
  const auto rows = static_cast<size_t>(input.m);
  if (!qdata || !scale || (qdata->dtype != DType::int8 && qdata->dtype != DType::uint8)) return std::nullopt;
  const size_t scales = scale->bytes.size() / dtype_bytes(scale->dtype);
  if (qdata->bytes.size() != rows * static_cast<size_t>(input.weight.k) || (scales != 1 && scales != rows) ||
      (zero && dtype_bits(zero->dtype) != 8))
    return std::nullopt;
  IntegerX x;
  for (size_t i = 0; i < qdata->bytes.size(); ++i) x.codes.push_back(integer_at(*qdata, i));
  x.is_signed = qdata->dtype == DType::int8;
  for (size_t row = 0; row < rows; ++row) {
    const size_t at = scales == 1 ? 0 : row;
    x.scales.push_back(load_float(scale->dtype, scale->bytes, at));
    x.zeros.push_back(zero ? integer_at(*zero, at) : 0);
  }
  return x;
}

// Sums unsigned codes of x and signed codes of the weight as instructions do that keep pairs in 16 bits.
double pairwise_sum(std::span<const int64_t> x, int64_t zero, bool is_signed,
                    std::span<const ExactWeight> weights) {
  const int64_t shift = is_signed ? 128 : 0;
  double sum = 0;
  for (size_t k = 0; k < x.size(); k += 2) {
    double pair = 0;
    for (size_t i = k; i < std::min(k + 2, x.size()); ++i) {
      pair += static_cast<double>(x[i] + shift) * weights[i].code;
      sum -= static_cast<double>(shift + zero) * weights[i].code;
    }
    sum += std::clamp(pair, -32768.0, 32767.0);
  }
  return sum;
}

Predicted with_saturated_pairs(const SeenAnswer& seen, const IntegerX& x, size_t i) {
  const KernelInput& input = seen.input;
  const auto n = static_cast<size_t>(input.weight.n), k = static_cast<size_t>(input.weight.k);
  const size_t row = i / n;
  const auto weights = seen.reference->row(static_cast<int64_t>(i % n));
  const double sum =
      pairwise_sum(std::span(x.codes).subspan(row * k, k), x.zeros[row], x.is_signed, weights) *
      x.scales[row] * weights[0].scale;
  const double bias = input.bias.empty() ? 0 : load_float(input.bias_dtype, input.bias, i % n);
  const double error = 0x1p-21 * (std::fabs(sum) + std::fabs(bias));  // of products and sums in float32
  return {round_to(input.y_dtype, sum + bias - error), round_to(input.y_dtype, sum + bias + error)};
}

void add_integer_sums(const SeenAnswer& seen, std::vector<AnswerHypothesis>& all) {
  const KernelInput& input = seen.input;
  if (input.activation == kWeightOnly || input.scheme->group() != 0 ||
      input.scheme->params().element != DType::int8)
    return;
  all.push_back({"pairs of products saturated to 16 bits", [&seen, &input]() -> PredictElement {
                   auto found = integer_x(input);
                   if (!found) return nullptr;
                   const auto x = std::make_shared<const IntegerX>(*std::move(found));
                   return [&seen, x](size_t i) { return with_saturated_pairs(seen, *x, i); };
                 }});
}

// A bias that follows the rows of y is within bounds where m <= n.
void add_bias_of_row(const SeenAnswer& seen, std::vector<AnswerHypothesis>& all) {
  const KernelInput& input = seen.input;
  if (input.bias.empty() || input.m > input.weight.n || input.m < 2) return;
  all.push_back({"bias of column r added to row r", [&seen, &input]() -> PredictElement {
                   const auto bias = std::make_shared<const std::vector<double>>(
                       load_doubles(input.bias_dtype, input.bias));
                   return [&seen, &input, bias](size_t i) {
                     const auto n = static_cast<size_t>(input.weight.n);
                     const Bounded& want = seen.want[i];
                     const double moved = (*bias)[i / n] - (*bias)[i % n];
                     const double error = want.error + 0x1p-22 * std::fabs(moved);
                     return Predicted{round_to(input.y_dtype, want.value + moved - error),
                                      round_to(input.y_dtype, want.value + moved + error)};
                   };
                 }});
}

}  // namespace

void add_arithmetic(const SeenAnswer& seen, std::vector<AnswerHypothesis>& all) {
  if (seen.input.op == Op::dequantize) return add_weight_arithmetic(seen, all);
  add_bias_of_row(seen, all);
  add_integer_sums(seen, all);
}

}  // namespace qcts
