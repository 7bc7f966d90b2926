// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "suites/inputs/generate.h"

namespace qcts {
namespace {

constexpr int64_t kUnitRows = 32, kHalfUnitRows = 16, kQuantizedRows = 512;

// Sets two random elements of every four to zero.
void keep_two_of_four(std::vector<std::byte>& weight, size_t element_bytes, uint64_t seed) {
  for (size_t four = 0; (four + 1) * 4 * element_bytes <= weight.size(); ++four) {
    const size_t dropped = splitmix64(seed, four) % 4,
                 other = (dropped + 1 + splitmix64(seed, ~four) % 3) % 4;
    std::memset(weight.data() + (4 * four + dropped) * element_bytes, 0, element_bytes);
    std::memset(weight.data() + (4 * four + other) * element_bytes, 0, element_bytes);
  }
}

bool takes_dense_noise(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  const int64_t rows = std::min<int64_t>(shape.n, kUnitRows);
  if (scheme.refusal({shape.dtype, rows, shape.k})) return true;
  const std::vector<std::byte> weight =
      noise_bytes(seed, static_cast<size_t>(rows * shape.k), shape.dtype, 0x1p-3);
  try {
    scheme.quantize({shape.dtype, rows, shape.k, weight});
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

Planes quantized_noise(const Scheme& scheme, const WeightShape& shape, uint64_t seed, MakeWeight noise) {
  return scheme.quantize({shape.dtype, shape.n, shape.k, noise(scheme, shape, seed)});
}

// Returns the dimension along which a plane grows with the rows, unit after unit; -1 if it does not grow, -2
// if it grows in another way.
int growing_dimension(const Plane& small, const Plane& large, int64_t n, int64_t units) {
  if (small.shape == large.shape) return -1;
  if (small.shape.size() != large.shape.size()) return -2;
  int found = -2;
  for (size_t d = 0; d < small.shape.size(); ++d) {
    if (small.shape[d] == large.shape[d]) continue;
    const bool by_units =
        small.shape[d] % units == 0 && large.shape[d] * kQuantizedRows == small.shape[d] * n;
    if (found != -2 || !by_units) return -2;
    found = static_cast<int>(d);
  }
  return found;
}

void fill_from_units(const Plane& small, Plane& large, size_t dimension, int64_t units, uint64_t seed) {
  size_t outer = 1;
  for (size_t d = 0; d < dimension; ++d) outer *= static_cast<size_t>(small.shape[d]);
  const size_t small_bytes = small.bytes.size() / outer, large_bytes = large.bytes.size() / outer;
  const auto count = static_cast<size_t>(units);
  const size_t unit_bytes = small_bytes / count;
  for (size_t o = 0; o < outer; ++o)
    for (size_t unit = 0; unit * unit_bytes < large_bytes; ++unit) {
      size_t taken = splitmix64(seed, unit) % count;
      // A row number that is truncated to 16 bits must find other rows.
      if (unit == 0x10000 / kHalfUnitRows && taken == splitmix64(seed, 0) % count)
        taken = (taken + 1) % count;
      std::memcpy(large.bytes.data() + o * large_bytes + unit * unit_bytes,
                  small.bytes.data() + o * small_bytes + taken * unit_bytes, unit_bytes);
    }
}

}  // namespace

std::vector<std::byte> noise_weight_for(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  std::vector<std::byte> weight =
      noise_bytes(seed, static_cast<size_t>(shape.n * shape.k), shape.dtype, 0x1p-3);
  if (!takes_dense_noise(scheme, shape, seed))
    keep_two_of_four(weight, static_cast<size_t>(dtype_bytes(shape.dtype)), seed + 2);
  return weight;
}

Planes random_planes(const Scheme& scheme, const WeightShape& shape, uint64_t seed, MakeWeight noise) {
  const WeightShape few{shape.dtype, kQuantizedRows, shape.k};
  const int64_t unit_rows = shape.n % kUnitRows == 0 ? kUnitRows : kHalfUnitRows;
  const int64_t units = kQuantizedRows / unit_rows;
  if (shape.n % unit_rows != 0 || shape.n <= kQuantizedRows || scheme.refusal(few))
    return quantized_noise(scheme, shape, seed, noise);
  const Planes small = quantized_noise(scheme, few, seed, noise);
  Planes large = make_planes(scheme.plane_specs(shape));
  for (size_t i = 0; i < large.size(); ++i) {
    const int dimension = growing_dimension(small[i], large[i], shape.n, units);
    if (dimension == -2) return quantized_noise(scheme, shape, seed, noise);
    if (dimension == -1)
      large[i].bytes = small[i].bytes;
    else
      fill_from_units(small[i], large[i], static_cast<size_t>(dimension), units, seed + 1);
  }
  return large;
}

}  // namespace qcts
