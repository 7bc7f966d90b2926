// SPDX-License-Identifier: BSD-3-Clause
#include "reference/numerics/float8.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/numerics/soft_float.h"

namespace qcts {

float largest_magnitude(std::span<const float> values) {
  float largest = 0;
  for (float x : values) {
    if (std::isnan(x)) return std::numeric_limits<float>::quiet_NaN();
    largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

float float8_scale(DType dtype, DType code, float largest, const Float8Bounds& bounds) {
  const auto in_dtype = [&](double bound) { return round_to(dtype, static_cast<float>(bound)); };
  if (bounds.lower && largest < in_dtype(*bounds.lower)) largest = in_dtype(*bounds.lower);
  if (bounds.upper && largest > in_dtype(*bounds.upper)) largest = in_dtype(*bounds.upper);
  return div_in(dtype, largest, static_cast<float>(float_format(code).max));
}

float float8_scale_floored(float largest, std::optional<float> upper) {
  constexpr float kFloor = 1.0f / 512;
  largest = std::max(largest, kFloor);
  if (upper) largest = std::min(largest, *upper);
  return largest / 448.0f;
}

float float8_scale_at_least(DType dtype, DType code, float largest) {
  const float scale = div_in(dtype, largest, static_cast<float>(float_format(code).max));
  return scale < 0x1p-23f ? 0x1p-23f : scale;
}

float float8_scale_bounded(DType code, float largest, float upper) {
  const float max = static_cast<float>(float_format(code).max), min = 1.0f / (max * 512.0f);
  const float scale = (largest > upper ? upper : largest) / max;
  return scale < min ? min : scale;
}

namespace {

// Returns the code of `value`, the quotient or product of x and scale.
uint8_t clamped_code(DType code, float value, float x, float scale) {
  if (std::isnan(value)) {
    const bool negative = std::isnan(x) ? std::signbit(x) : std::isnan(scale) ? std::signbit(scale) : true;
    return negative ? 0xFF : 0x7F;
  }
  const float max = static_cast<float>(float_format(code).max);
  return static_cast<uint8_t>(encode_float(code, std::clamp(value, -max, max)));
}

}  // namespace

uint8_t float8_code(DType code, float x, float scale) { return clamped_code(code, x / scale, x, scale); }

uint8_t float8_code_by_reciprocal(DType code, float x, float scale) {
  return float8_code_by_reciprocal_in(DType::float32, code, x, scale);
}

uint8_t float8_code_by_reciprocal_in(DType common, DType code, float x, float scale) {
  return clamped_code(code, mul_in(common, x, div_in(common, 1.0f, scale)), x, scale);
}

}  // namespace qcts
