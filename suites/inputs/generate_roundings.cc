// SPDX-License-Identifier: BSD-3-Clause
// Scales for which the two roundings of dequantize, to float32 and to the weight's type, differ from one.
#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_special.h"

namespace qcts {
namespace {

// Scales that are tried in place of one. A product is a tie after its first rounding alone for about one
// scale in 2^15.
constexpr int kTrials = 1 << 18;

bool is_rounded_twice(DType dtype, double product) {
  return round_to(dtype, round_to(DType::float32, product)) != round_to(dtype, product);
}

// Returns the next scale after `scale` for which the code's product is rounded twice.
std::optional<double> next_such_scale(DType dtype, double code, double scale) {
  for (int i = 0; i < kTrials; ++i) {
    scale = std::nextafterf(static_cast<float>(scale), INFINITY);
    if (is_rounded_twice(dtype, code * scale)) return scale;
  }
  return std::nullopt;
}

}  // namespace

bool has_two_roundings(const Scheme& scheme, const WeightShape& shape) {
  if (shape.dtype == DType::float32 || scheme.params().zero_point == ZeroPointKind::floating) return false;
  const std::vector<PlaneSpec> specs = scheme.plane_specs(shape);
  const auto scales = std::ranges::find(specs, "scale", &PlaneSpec::name);
  return scales != specs.end() && scales->dtype == DType::float32 && scheme.params().levels == 1;
}

void round_twice(KernelInput& input) {
  const WeightShape& shape = input.weight;
  Plane& scales = *std::ranges::find(input.planes, "scale", &Plane::name);
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  for (int64_t n = 0; n < shape.n; ++n) {
    input.scheme->exact_row(input.planes, shape, n, row);
    for (int64_t k = 0; k < shape.k; ++k) {
      const auto at = static_cast<uint64_t>(input.scheme->element_of(shape, scales.name, n, k));
      const double code = row[static_cast<size_t>(k)].code,
                   scale = load_float(DType::float32, scales.bytes, at);
      // Products with a power of two are exact. The first code of each scale decides.
      int exponent = 0;
      if (!std::isfinite(code) || std::fabs(std::frexp(code, &exponent)) == 0.5 || code == 0) continue;
      if (is_rounded_twice(shape.dtype, code * scale)) continue;
      if (const std::optional<double> other = next_such_scale(shape.dtype, code, scale))
        store_float(DType::float32, scales.bytes, at, *other);
      k = k / std::max<int64_t>(1, input.scheme->group()) * input.scheme->group() +
          (input.scheme->group() > 0 ? input.scheme->group() : shape.k) - 1;
    }
    if (input.scheme->params().group_rows != 1) return;
  }
}

}  // namespace qcts
