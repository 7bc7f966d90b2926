// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/generate_zero_codes.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {
namespace {

// Returns the columns in which some rows have a weight of zero and others a finite one that is not zero.
std::vector<int64_t> mixed_columns(const Scheme& scheme, const WeightShape& shape, const Planes& planes) {
  std::vector<bool> zero(static_cast<size_t>(shape.k)), other(zero);
  std::vector<ExactWeight> row(zero.size());
  for (int64_t n = 0; n < shape.n; ++n) {
    scheme.exact_row(planes, shape, n, row);
    for (size_t k = 0; k < row.size(); ++k) {
      const double weight = row[k].product + row[k].zero;
      (weight == 0 ? zero : other)[k] = weight == 0 || std::isfinite(weight);
    }
  }
  std::vector<int64_t> mixed;
  for (size_t k = 0; k < row.size(); ++k)
    if (zero[k] && other[k]) mixed.push_back(static_cast<int64_t>(k));
  return mixed;
}

// Noise in which every third element of a column is zero.
Planes noise_with_zeros(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  Floats w(shape.dtype, shape.n, shape.k);
  for (int64_t r = 0; r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      if ((r + c) % 3 != 0) w.at(r, c) = noise(seed, static_cast<uint64_t>(r * shape.k + c));
  return quantized(scheme, shape, w.bytes());
}

// The weights of exact_sums are small integers, which include zero for every scheme that has them.
Planes planes_with_zeros(const Scheme& scheme, const WeightShape& shape, uint64_t seed) {
  if (!has_exact_sums(scheme, shape)) return noise_with_zeros(scheme, shape, seed);
  return exact_sums(scheme, {Generator::exact_sums, shape, 1, seed, kWeightOnly}, seed).input.planes;
}

bool has_zero_points(const Planes& planes) {
  for (const Plane& plane : planes)
    if (plane.name.find("zero") != plane.name.npos) return true;
  return false;
}

}  // namespace

bool has_zero_codes(const Scheme& scheme, const WeightShape& shape) {
  // NF4 needs whole blocks of scales.
  for (const int64_t rows : {std::min<int64_t>(shape.n, 16), shape.n, int64_t{256}}) {
    const WeightShape few{shape.dtype, rows, shape.k};
    if (!scheme.refusal(few)) return !mixed_columns(scheme, few, planes_with_zeros(scheme, few, 1)).empty();
  }
  return false;
}

Generated zero_codes(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                   kNan = std::numeric_limits<double>::quiet_NaN(),
                   kPlanted[] = {kInfinity, kNan, -kInfinity};
  const WeightShape& shape = synthetic.weight;
  Generated made;
  made.input.planes = planes_with_zeros(scheme, shape, seed);
  const std::vector<int64_t> columns = mixed_columns(scheme, shape, made.input.planes);
  if (columns.empty()) throw std::logic_error("zero_codes: no column has weights of zero next to others");
  const bool only_nan = has_zero_points(made.input.planes);
  Floats x(shape.dtype, synthetic.m, shape.k);
  for (size_t i = 0; i < x.values.size(); ++i) x.values[i] = noise(seed + 1, i);
  for (int64_t i = 0; i < synthetic.m; i += 2) {
    const size_t turn = static_cast<size_t>(i / 2) % std::size(kPlanted);
    // the last, the first and one between
    const size_t place = turn == 0 ? columns.size() - 1 : turn == 1 ? 0 : columns.size() / 2;
    x.at(i, columns[place]) = only_nan ? kNan : kPlanted[turn];
  }
  made.input.x = x.bytes();
  // Rows of x that are finite show whether the bias is lost.
  Floats bias(shape.dtype, 1, shape.n);
  for (int64_t c = 0; c < shape.n; ++c) bias.at(0, c) = noise(seed + 2, static_cast<uint64_t>(c));
  int64_t column = shape.n;
  for (const double planted : kPlanted)
    if (column > 1) bias.at(0, --column) = planted;
  made.input.bias = bias.bytes();
  return made;
}

}  // namespace qcts
