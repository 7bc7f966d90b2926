// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/pre_scale.h"

#include "reference/numerics/soft_float.h"

namespace qcts {

bool is_pre_scaled(Policy activation) { return activation.name().starts_with(kPreScaled); }

std::string_view without_pre_scale(Policy activation) {
  return is_pre_scaled(activation) ? activation.name().substr(kPreScaled.size()) : activation.name();
}

PlaneSpec pre_scale_spec(const WeightShape& shape) { return {"act_pre_scale", shape.dtype, {shape.k}}; }

WrittenRange pre_scale_range(const WeightShape& shape) {
  const FloatFormat& format = float_format(shape.dtype);
  return {"act_pre_scale", {format.min_subnormal, format.max}};
}

std::vector<std::byte> pre_scaled(const Matrix& x, const Planes& weight) {
  require_planes(weight, {pre_scale_spec({x.dtype, 1, x.cols})});
  const std::vector<float> factors = load_floats(x.dtype, plane(weight, "act_pre_scale").bytes);
  const std::vector<float> values = load_floats(x.dtype, x.bytes);
  std::vector<std::byte> scaled(x.bytes.size());
  for (int64_t i = 0; i < x.rows * x.cols; ++i)
    store_float(x.dtype, scaled, i, mul_in(x.dtype, values[i], factors[i % x.cols]));
  return scaled;
}

}  // namespace qcts
