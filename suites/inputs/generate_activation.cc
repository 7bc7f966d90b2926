// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {
namespace {

// Maps the floats of one type to integers in increasing order.
int64_t to_ordered(DType dtype, double value) {
  const uint64_t bits = encode_float(dtype, value);
  const uint64_t sign = uint64_t{1} << (dtype_bits(dtype) - 1);
  return bits & sign ? -static_cast<int64_t>(bits & (sign - 1)) : static_cast<int64_t>(bits);
}

double from_ordered(DType dtype, int64_t ordered) {
  const uint64_t sign = uint64_t{1} << (dtype_bits(dtype) - 1);
  return decode_float(dtype,
                      ordered < 0 ? static_cast<uint64_t>(-ordered) | sign : static_cast<uint64_t>(ordered));
}

// Finds elements next to steps of `meaning`, which maps each float to its quantized value. The first two
// elements of each group of a row are its minimum and maximum.
std::vector<std::byte> boundary_rows(Floats w, int64_t group, uint64_t seed,
                                     const std::function<std::vector<double>(const Floats&)>& meaning) {
  constexpr double kMagnitudes[5] = {127.5, 7.5, 448, 1, 5.37109375};
  const DType dtype = w.dtype;
  const auto is_anchor = [&](int64_t c) { return c % group < 2; };
  std::vector<int64_t> low(w.values.size()), high(w.values.size());
  for (int64_t r = 0; r < w.rows; ++r) {
    for (int64_t c = 0; c < w.cols; ++c) {
      const double magnitude = std::ldexp(kMagnitudes[(r + c / group) % 5], static_cast<int>(r % 7) - 3);
      const size_t i = static_cast<size_t>(r * w.cols + c);
      const double start = noise(seed, i) / 4 * magnitude;
      w.values[i] = is_anchor(c) ? (c % group == 0 ? -magnitude : magnitude) : start;
      low[i] = to_ordered(dtype, w.values[i]);
      high[i] = to_ordered(dtype, magnitude);
    }
  }
  // Invariant: low has the same meaning as the start; high has a greater one or is the maximum. Bisects all
  // columns at once.
  const std::vector<double> start = meaning(w);
  for (uint32_t step = 0; step < dtype_bits(dtype); ++step) {
    std::vector<int64_t> middle(low.size());
    for (size_t i = 0; i < low.size(); ++i) {
      middle[i] = low[i] + (high[i] - low[i]) / 2;
      if (!is_anchor(static_cast<int64_t>(i) % w.cols)) w.values[i] = from_ordered(dtype, middle[i]);
    }
    const std::vector<double> now = meaning(w);
    for (size_t i = 0; i < low.size(); ++i) (now[i] == start[i] ? low[i] : high[i]) = middle[i];
  }
  for (size_t i = 0; i < low.size(); ++i)
    if (!is_anchor(static_cast<int64_t>(i) % w.cols))
      w.values[i] = from_ordered(dtype, i % 3 == 0 ? low[i] : i % 3 == 1 ? high[i] : low[i] - 1);
  return w.bytes();
}

}  // namespace

std::vector<double> meant_activation(const Scheme& scheme, const Matrix& x, Policy activation,
                                     const Planes& planes) {
  const Planes quantized = scheme.quantize_activation(x, activation, planes);
  std::vector<double> values(static_cast<size_t>(x.rows * x.cols));
  for (int64_t m = 0; m < x.rows; ++m)
    scheme.exact_activation(quantized, x, activation, m,
                            {values.data() + m * x.cols, static_cast<size_t>(x.cols)});
  return values;
}

std::optional<ActivationAnchors> activation_anchors(const Scheme& scheme, const WeightShape& shape,
                                                    Policy activation, const Planes& planes) {
  const auto survives = [&](const ActivationAnchors& anchors) {
    Floats x(shape.dtype, 1, shape.k);
    const auto is_anchor = [&](int64_t c) { return c % anchors.every < 2; };
    for (int64_t c = 0; c < shape.k; ++c) {
      if (anchors.of_all != 0 && c < anchors.every)
        x.at(0, c) = c == 0 ? anchors.of_all : 0;
      else
        x.at(0, c) = !is_anchor(c)            ? static_cast<double>(c % 3 - 1)
                     : c % anchors.every == 0 ? anchors.pair.low
                                              : anchors.pair.high;
    }
    const std::vector<std::byte> bytes = x.bytes();
    const std::vector<double> meant =
        meant_activation(scheme, {shape.dtype, 1, shape.k, bytes}, activation, planes);
    for (int64_t c = 0; c < shape.k; ++c)
      if (!is_anchor(c) && meant[static_cast<size_t>(c)] != x.at(0, c)) return false;
    return true;
  };
  if (survives({{0, 0}, shape.k})) return std::nullopt;
  constexpr AnchorPair kPairs[] = {{-127.5, 127.5}, {-63.5, 63.5},   {-127, 128}, {-64, 63},   {-127, 127},
                                   {-448, 448},     {-57344, 57344}, {-6, 6},     {-7.5, 7.5}, {-128, 127}};
  for (const double of_all : {0.0, 448.0 * 6})
    for (const int64_t every : {shape.k, group_length(scheme, shape)})
      for (const AnchorPair& pair : kPairs)
        if (survives({pair, every, of_all})) return ActivationAnchors{pair, every, of_all};
  throw std::logic_error("exact_sums: no maximum gives " + std::string(activation.name()) +
                         " a scale that is a power of two");
}

std::vector<std::byte> boundary_weight(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  return boundary_rows(
      Floats(shape.dtype, shape.n, shape.k), group_length(scheme, shape), seed, [&](const Floats& w) {
        const std::vector<std::byte> back = scheme.dequantize(quantized(scheme, shape, w.bytes()), shape);
        std::vector<double> values(w.values.size());
        for (size_t i = 0; i < values.size(); ++i) values[i] = load_float(shape.dtype, back, i);
        return values;
      });
}

std::vector<std::byte> boundary_activation(const Scheme& scheme, const WeightShape& shape, Policy activation,
                                           const Planes& planes, int64_t m, uint64_t seed) {
  return boundary_rows(Floats(shape.dtype, m, shape.k), shape.k, seed, [&](const Floats& x) {
    const std::vector<std::byte> bytes = x.bytes();
    return meant_activation(scheme, {shape.dtype, m, shape.k, bytes}, activation, planes);
  });
}

namespace {
// Returns -3, or 0 if a calibration writes no other zero point.
int8_t zero_point_of(const Scheme& scheme, const WeightShape& shape, Policy activation,
                     std::string_view name) {
  for (const WrittenRange& range : scheme.policy_ranges(shape, activation))
    if (range.plane == name && range.values.holds(-3)) return -3;
  return 0;
}
}  // namespace

Planes policy_planes(const Scheme& scheme, const WeightShape& shape, Policy activation, bool exact) {
  Planes planes = make_planes(scheme.policy_specs(shape, activation));
  for (Plane& plane : planes) {
    if (plane.name == "activation_scale_ub") {  // half of the rows of noise have an element above it
      store_float(plane.dtype, plane.bytes, 0, exact ? 0x1p20 : 2.75);
      continue;
    }
    for (size_t i = 0; i < plane.bytes.size() / dtype_bytes(plane.dtype); ++i) {
      if (has_float_elements(plane.dtype))
        store_float(plane.dtype, plane.bytes, i, exact ? 1.0 : 0.0371 + 0.0013 * static_cast<double>(i % 7));
      else
        plane.bytes[i] = static_cast<std::byte>(zero_point_of(scheme, shape, activation, plane.name));
    }
  }
  return planes;
}

}  // namespace qcts
