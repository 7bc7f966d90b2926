// SPDX-License-Identifier: BSD-3-Clause
// Weights and rows of x whose sums are hard to compute accurately, or are at the ends of y's range.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {

void cancelling(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t half = shape.k / 2;
  Floats w(shape.dtype, shape.n, shape.k), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      w.at(r, c) =
          std::fabs(noise(seed, static_cast<uint64_t>(r * shape.k + c % std::max<int64_t>(half, 1))));
  for (int64_t i = 0; i < synthetic.m; ++i) {
    for (int64_t c = 0; c < half; ++c) {
      x.at(i, c) = 2048 + 512 * noise(seed + 1, static_cast<uint64_t>(i * shape.k + c)) / 4;
      x.at(i, half + c) = -x.at(i, c);
    }
    if (shape.k % 2 == 1) x.at(i, shape.k - 1) = 1;
  }
  input.planes = quantized(scheme, shape, w.bytes());
  input.x = x.bytes();
}

void one_sign(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input) {
  const WeightShape& shape = synthetic.weight;
  const int64_t group = group_length(scheme, shape);
  Floats w(shape.dtype, shape.n, shape.k), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c) w.at(r, c) = (c % group == 0) == (r % 2 == 0) ? -1 : 1;
  // 127 in the upper byte of 16 bits, and the maximum of a byte.
  for (int64_t i = 0; i < synthetic.m; ++i)
    for (int64_t c = 0; c < shape.k; ++c)
      x.at(i, c) = std::ldexp(i % 2 == 0 ? 127.0 : -127.0, static_cast<int>(i) - 6);
  input.planes = quantized(scheme, shape, w.bytes());
  input.x = x.bytes();
}

namespace {

// Returns the magnitudes whose negative becomes the code -128, or 1 if there is none.
template <class PlanesOf>
std::vector<double> reaching_magnitudes(DType dtype, int64_t k, const PlanesOf& planes_of) {
  constexpr int kSteps = 128;  // those of bfloat16
  std::vector<double> found;
  for (int step = 0; step < kSteps; ++step) {
    Floats row(dtype, 1, k);
    for (double& value : row.values) value = -1 - static_cast<double>(step) / kSteps;
    Planes planes = planes_of(row.bytes());
    if (std::ranges::count(codes_plane(planes).bytes, std::byte{0x80}) != 0)
      found.push_back(-row.values.front());
  }
  return found.empty() ? std::vector<double>{1} : found;
}

}  // namespace

bool has_end_pairs(const Scheme& scheme, Policy policy) {
  return scheme.params().code_min == -128 && policy.name().starts_with("dyn_");
}

// In codes: (-128, -128), (127, 127), (2, 0). With x of -128, the products are 32768, -32512 and -256.
void end_pairs(const Scheme& scheme, const Synthetic& synthetic, KernelInput& input) {
  constexpr double kBlock[] = {-1, -1, 1, 1, 2 / 127.5, 0};
  constexpr int64_t kWidth = std::size(kBlock);
  const WeightShape& shape = synthetic.weight;
  const WeightShape row{shape.dtype, 1, shape.k};
  const std::vector<double> of_weight =
      reaching_magnitudes(shape.dtype, shape.k,
                          [&](const std::vector<std::byte>& bytes) { return quantized(scheme, row, bytes); });
  const std::vector<double> of_x =
      reaching_magnitudes(shape.dtype, shape.k, [&](const std::vector<std::byte>& bytes) {
        return scheme.quantize_activation({shape.dtype, 1, shape.k, bytes}, synthetic.activation, {});
      });
  const bool has_one_scale = scheme.params().group_rows == 0;
  Floats w(shape.dtype, shape.n, shape.k), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t c = 0; c < shape.k / kWidth * kWidth; ++c) {
    for (int64_t r = 0; r < shape.n; ++r)
      w.at(r, c) =
          kBlock[c % kWidth] * of_weight[has_one_scale ? 0 : static_cast<size_t>(r) % of_weight.size()];
    for (int64_t i = 0; i < synthetic.m; ++i)
      x.at(i, c) = (i % 2 == 0 ? -1 : 1) * of_x[static_cast<size_t>(i) % of_x.size()];
  }
  input.planes = quantized(scheme, shape, w.bytes());
  input.x = x.bytes();
}

// Every other element is a normal number, so that a wrong code is visible even if subnormal x may become
// zero.
void make_half_subnormal(Floats& x) {
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] *= i % 2 == 0 ? 0x1p-17 : 0x1p-10;
}

// Multiples of bfloat16's smallest number: exact in bfloat16 and in float32.
void make_subnormal_x(Floats& x) {
  constexpr double kUnit = 0x1p-133;
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t c = 0; c < x.cols; ++c) {
      const double steps = std::clamp(std::nearbyint(16 * x.at(r, c)), -127.0, 127.0);
      x.at(r, c) = steps * kUnit * (r % 2 == 0 ? 1 : 0x1p20);
    }
}

void make_huge_weight(Floats& w) {
  for (double& value : w.values) value = std::ldexp(value, 100);
}

void make_tiny_weight(Floats& w) {
  const int exponent = w.dtype == DType::float16 ? -10 : -14;  // recipes keep scales above 2^-23
  for (double& value : w.values) value = std::ldexp(value, exponent);
}

void make_tiny_x(Floats& x) {
  const int tiny = x.dtype == DType::float16 ? -8 : -117,
            larger = tiny + (x.dtype == DType::float16 ? 10 : 30);
  constexpr double kLeast = 0x1p-6;  // so that no element is subnormal itself
  for (int64_t r = 0; r < x.rows; ++r)
    for (int64_t c = 0; c < x.cols; ++c) {
      const double value = std::copysign(std::max(std::fabs(x.at(r, c)), kLeast), x.at(r, c));
      x.at(r, c) = std::ldexp(value, r % 2 == 0 ? tiny : larger);
    }
}

// Each row has one sign, so that its range is finite, and its largest element in each eighth column: another
// one in each pair of rows, since few of them give a code and a scale whose product overflows.
void fill_to_max(Floats& w) {
  const FloatFormat& format = float_format(w.dtype);
  for (int64_t r = 0; r < w.rows; ++r) {
    const double below = std::ldexp(static_cast<double>(r / 2), -format.mantissa_bits - 1);
    const double largest = (r % 2 == 0 ? -1 : 1) * format.max * (1 - below);
    for (int64_t c = 0; c < w.cols; ++c)
      w.at(r, c) = largest * (c % 8 == 0 ? 1 : 0.5 + std::fabs(w.at(r, c)) / 10);
  }
}

}  // namespace qcts
