// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/edited_planes.h"

#include <bit>
#include <cmath>
#include <limits>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {
namespace {

bool is_nan_code(DType dtype, std::byte code) {
  return (dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2) &&
         std::isnan(decode_float(dtype, std::to_integer<uint64_t>(code)));
}

// Returns the byte as a checkpoint stores a code of fewer bits: intx stores signed numbers.
std::byte narrowed(std::byte value, int bits, DType dtype) {
  const int low = std::to_integer<int>(value) & ((1 << bits) - 1);
  const bool negative = dtype == DType::int8 && (low >> (bits - 1)) != 0;
  return static_cast<std::byte>(negative ? low - (1 << bits) : low);
}

}  // namespace

void plant_all_codes(const Scheme& scheme, const WeightShape& shape, Planes& planes, bool with_nan) {
  Plane& codes = codes_plane(planes);
  const size_t values = scheme.codes().values.size();
  const bool byte_a_code = codes.bytes.size() == static_cast<size_t>(shape.n * shape.k);
  const int bits = byte_a_code && values > 0 && values < 256 ? std::countr_zero(values) : 8;
  for (size_t i = 0; i < codes.bytes.size(); ++i) {
    std::byte value{static_cast<uint8_t>(i * 167 + i / 256 * 29)};
    if (!with_nan && is_nan_code(codes.dtype, value)) value &= std::byte{0x80};
    codes.bytes[i] = narrowed(value, bits, codes.dtype);
  }
}

void drop_infinities(const WeightShape& shape, Plane& codes) {
  if (codes.dtype != DType::float8_e5m2 || shape.k < 256) return;
  for (size_t i = static_cast<size_t>(shape.k); i < codes.bytes.size(); ++i)
    if ((codes.bytes[i] & std::byte{0x7F}) == std::byte{0x7C}) codes.bytes[i] &= std::byte{0x80};
}

void scramble_scales(Planes& planes, uint64_t seed) {
  for (Plane& plane : planes) {
    if (plane.dtype != DType::float32) continue;
    for (size_t i = 0; i + 4 <= plane.bytes.size(); i += 4) {
      const uint64_t random = splitmix64(seed, i);
      plane.bytes[i] = static_cast<std::byte>(random);
      plane.bytes[i + 1] = static_cast<std::byte>(random >> 8);
    }
  }
}

void stretch_scales(Planes& planes) {
  for (Plane& plane : planes) {
    if (!has_float_elements(plane.dtype) || plane.name == codes_plane(planes).name) continue;
    const size_t bytes = dtype_bytes(plane.dtype);
    const double normal = float_format(plane.dtype).min_normal;
    for (size_t i = 0; i < plane.bytes.size() / bytes; ++i) {
      const double value = load_float(plane.dtype, plane.bytes, i);
      if (!std::isfinite(value) || value == 0) continue;
      int exponent = 0;
      const double mantissa = std::frexp(value, &exponent);
      switch (i / 2 % 4) {
        case 1:
          store_float(plane.dtype, plane.bytes, i, mantissa * normal);
          break;
        case 2:
          store_float(plane.dtype, plane.bytes, i, std::copysign(normal * 0x1p-7, value));
          break;
        case 3:
          store_float(plane.dtype, plane.bytes, i, mantissa * std::ldexp(float_format(plane.dtype).max, -9));
          break;
        default:
          break;
      }
    }
    if (plane.bytes.size() > 8 * bytes)
      store_float(plane.dtype, plane.bytes, plane.bytes.size() / bytes - 1,
                  std::numeric_limits<double>::quiet_NaN());
  }
}

}  // namespace qcts
