// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/generate_related.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "suites/inputs/cut.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {
namespace {

constexpr double kFactor = 8;

// Returns a permutation of the columns within each group.
std::vector<int64_t> order_of_columns(int64_t k, int64_t group, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(k));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t c = 0; c < k; ++c) {
    const int64_t first = c / group * group, count = std::min(group, k - first);
    const auto other =
        static_cast<int64_t>(splitmix64(seed, static_cast<uint64_t>(c)) % static_cast<uint64_t>(count));
    std::swap(order[static_cast<size_t>(c)], order[static_cast<size_t>(first + other)]);
  }
  return order;
}

void multiply(DType dtype, std::vector<std::byte>& elements, double factor) {
  for (size_t i = 0; i < elements.size() / dtype_bytes(dtype); ++i)
    store_float(dtype, elements, i, factor * load_float(dtype, elements, i));
}

// Returns the column at which k is cut in two, a multiple of the group length.
int64_t cut_of(const Scheme& scheme, int64_t k) {
  const int64_t group = std::max<int64_t>(scheme.group(), 1);
  return k / 2 / group * group;
}

KernelInput part_of_k(const KernelInput& whole, int64_t k, End end) {
  KernelInput part = whole;
  part.weight.k = k;
  std::optional<Planes> planes = cut_planes(*whole.scheme, whole.planes, part.weight, whole.activation, end);
  if (!planes)
    throw std::logic_error("split_k: the planes of " + std::string(whole.scheme->name()) + " cannot be cut");
  part.planes = std::move(*planes);
  const int64_t before[2] = {whole.m, whole.weight.k}, after[2] = {whole.m, k};
  part.x = cut_array(whole.x, before, after, dtype_bytes(whole.x_dtype), end);
  return part;
}

std::vector<ExactWeight> first_row(const Scheme& scheme, const Planes& planes, const WeightShape& shape) {
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  scheme.exact_row(planes, shape, 0, row);
  return row;
}

bool same_weight(const ExactWeight& a, const ExactWeight& b) {
  return a.product == b.product && a.zero == b.zero;
}

// Do columns keep their values when they move? Not if a recipe depends on a column's position.
bool moves_columns(const Scheme& scheme, const WeightShape& shape) {
  const Synthetic synthetic{Generator::permuted_k, shape, 1, 0};
  const std::vector<int64_t> order = order_of_columns(shape.k, group_length(scheme, shape), 1);
  const auto here = first_row(scheme, exact_sums(scheme, synthetic, 1).input.planes, synthetic.weight);
  const auto there =
      first_row(scheme, exact_sums(scheme, synthetic, 1, order).input.planes, synthetic.weight);
  for (size_t c = 0; c < here.size(); ++c)
    if (!same_weight(there[c], here[static_cast<size_t>(order[c])])) return false;
  return true;
}

// Do columns keep their values when the planes are cut?
bool cuts_columns(const Scheme& scheme, const WeightShape& shape) {
  const Synthetic synthetic{Generator::split_k, shape, 1, 0};
  const WeightShape whole = synthetic.weight;
  const Planes planes = exact_sums(scheme, synthetic, 1).input.planes;
  const auto row = first_row(scheme, planes, whole);
  const int64_t cut = cut_of(scheme, shape.k);
  for (const End end : {End::first, End::last}) {
    const WeightShape part{whole.dtype, whole.n, end == End::first ? cut : whole.k - cut};
    if (part.k == 0 || scheme.refusal(part)) return false;
    const std::optional<Planes> some = cut_planes(scheme, planes, part, kWeightOnly, end);
    if (!some) return false;
    const auto piece = first_row(scheme, *some, part);
    for (size_t c = 0; c < piece.size(); ++c)
      if (!same_weight(piece[c], row[c + (end == End::first ? 0 : static_cast<size_t>(cut))])) return false;
  }
  return true;
}

}  // namespace

bool is_relation(Generator generator) {
  return generator == Generator::scaled_x || generator == Generator::permuted_k ||
         generator == Generator::zero_x || generator == Generator::split_k;
}

bool has_relation(const Scheme& scheme, Generator generator, const WeightShape& shape) {
  WeightShape probe{shape.dtype, 2, shape.k};  // two rows are enough
  if (scheme.refusal(probe)) probe = shape;
  try {
    if (generator == Generator::permuted_k) return moves_columns(scheme, probe);
    return generator != Generator::split_k || cuts_columns(scheme, probe);
  } catch (const std::exception&) {  // these columns alone are invalid: half a block of 2:4 sparsity
    return false;
  }
}

void relate(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed, Generated& made) {
  KernelInput& first = made.input;
  const Generator generator = synthetic.generator;
  if (generator == Generator::scaled_x) {
    first.bias.clear();
    made.related = {first};
    multiply(first.x_dtype, made.related[0].x, kFactor);
  } else if (generator == Generator::permuted_k) {
    const WeightShape& shape = synthetic.weight;
    const Generated moved =
        exact_sums(scheme, synthetic, seed, order_of_columns(shape.k, group_length(scheme, shape), seed + 5));
    made.related = {first};
    made.related[0].planes = moved.input.planes;
    made.related[0].x = moved.input.x;
  } else if (generator == Generator::zero_x) {
    made.related = {first};
    multiply(first.x_dtype, made.related[0].x, 0);
  } else {
    const int64_t cut = cut_of(scheme, synthetic.weight.k);
    made.related = {part_of_k(first, cut, End::first), part_of_k(first, synthetic.weight.k - cut, End::last)};
    made.related[1].bias.clear();
  }
}

std::optional<Contradiction> contradiction(Generator generator, std::span<const double> y,
                                           std::span<const std::vector<double>> answers,
                                           std::span<const double> bias) {
  for (size_t i = 0; i < y.size(); ++i) {
    double want = y[i], got = answers[0][i];
    if (generator == Generator::scaled_x) want *= kFactor;
    if (generator == Generator::zero_x) want = bias[i % bias.size()];
    if (generator == Generator::split_k) got += answers[1][i];
    if (!(got == want)) return Contradiction{i, want, got};
  }
  return std::nullopt;
}

}  // namespace qcts
