// SPDX-License-Identifier: BSD-3-Clause
// Weights and rows of x whose products sum exactly in every order and at every stage.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_parts.h"

namespace qcts {
namespace {

enum class Zeros : uint8_t { any, none };  // none: no zero point affects any weight

bool row_survives(const Scheme& scheme, const WeightShape& shape, const AnchorPair& anchors, Zeros zeros) {
  const WeightShape probe{shape.dtype, 1, shape.k};
  Floats w(shape.dtype, 1, shape.k);
  const int64_t group = group_length(scheme, shape);
  for (int64_t c = 0; c < shape.k; ++c)
    w.at(0, c) = c % group == 0   ? anchors.low
                 : c % group == 1 ? anchors.high
                                  : static_cast<double>(c % 7 - 3);
  if (scheme.refusal(probe)) return false;
  const Planes planes = quantized(scheme, probe, w.bytes());
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  scheme.exact_row(planes, probe, 0, row);
  for (int64_t c = 0; c < shape.k; ++c) {
    const ExactWeight& weight = row[static_cast<size_t>(c)];
    int exponent = 0;
    if (std::frexp(weight.scale, &exponent) != 0.5) return false;
    if (c % group > 1 && weight.product + weight.zero != w.at(0, c)) return false;
    if (zeros == Zeros::none && weight.zero != 0) return false;
  }
  return true;
}

// A row of one group decides against most anchors; plans ask for rows of up to 500 groups.
bool integers_survive(const Scheme& scheme, const WeightShape& shape, const AnchorPair& anchors,
                      Zeros zeros) {
  const WeightShape group{shape.dtype, 1, group_length(scheme, shape)};
  if (group.k < shape.k && !scheme.refusal(group) && !row_survives(scheme, group, anchors, zeros))
    return false;
  return row_survives(scheme, shape, anchors, zeros);
}

constexpr AnchorPair kAnchors[] = {{-127.5, 127.5}, {-448, 448}, {-8, 7}, {-7, 8},         {-9, 6}, {-10, 5},
                                   {-7.5, 7.5},     {-127, 127}, {-7, 7}, {-57344, 57344}, {-6, 6}};

std::vector<AnchorPair> surviving_anchors(const Scheme& scheme, const WeightShape& shape, Zeros zeros) {
  std::vector<AnchorPair> found;
  std::ranges::copy_if(kAnchors, std::back_inserter(found), [&](const AnchorPair& anchors) {
    return integers_survive(scheme, shape, anchors, zeros);
  });
  return found;
}

// Makes a weight of small integers, -3 to 3, times 1/16 and 1/8 alternately.
Floats exact_weight(const WeightShape& shape, uint64_t seed, int64_t group,
                    const std::vector<AnchorPair>& anchors) {
  Floats w(shape.dtype, shape.n, shape.k);
  for (int64_t r = 0; r < shape.n; ++r) {
    for (int64_t c = 0; c < shape.k; ++c) {
      const double unit = std::ldexp(1.0, static_cast<int>((r + c / group) % 2) - 4);
      const uint64_t random = splitmix64(seed, static_cast<uint64_t>(r * shape.k + c));
      double value = static_cast<double>(static_cast<int64_t>(random % 7) - 3);
      if (!anchors.empty()) {
        const AnchorPair& pair = anchors[static_cast<size_t>(r + c / group) % anchors.size()];
        value = c % group == 0 ? pair.low : c % group == 1 ? pair.high : value;
      }
      w.at(r, c) = value * unit;
    }
  }
  return w;
}

// An odd factor on the scales: times 3, a power of two stays exact in every type.
void triple_scales(Planes& planes) {
  for (Plane& plane : planes) {
    if (!has_float_elements(plane.dtype) || plane.name == codes_plane(planes).name) continue;
    const size_t bytes = dtype_bytes(plane.dtype);
    for (size_t i = 0; i < plane.bytes.size() / bytes; ++i)
      store_float(plane.dtype, plane.bytes, i, 3 * load_float(plane.dtype, plane.bytes, i));
  }
}

Floats reordered(const Floats& from, const std::vector<int64_t>& order) {
  Floats to(from.dtype, from.rows, from.cols);
  for (int64_t r = 0; r < from.rows; ++r)
    for (int64_t c = 0; c < from.cols; ++c)
      to.at(r, c) = from.values[static_cast<size_t>(r * from.cols + order[static_cast<size_t>(c)])];
  return to;
}

// Maximum of a sum in exact_sums, in units: bfloat16, the narrowest type that a stage rounds to, holds it
// exactly.
constexpr int64_t kExactUnits = 256;

constexpr int64_t kLeastWithOutlier = 8;  // elements of a group: two anchors, the outlier, some small ones

}  // namespace

bool has_finite_weights(const Scheme& scheme, const WeightShape& shape) {
  const WeightShape row{shape.dtype, 1, shape.k};
  if (scheme.refusal(row)) return true;
  Floats w(shape.dtype, 1, shape.k);
  for (int64_t c = 0; c < shape.k; ++c) w.at(0, c) = static_cast<double>(c % 7 - 3);
  std::vector<ExactWeight> weights(static_cast<size_t>(shape.k));
  scheme.exact_row(quantized(scheme, row, w.bytes()), row, 0, weights);
  return std::ranges::any_of(weights,
                             [](const ExactWeight& weight) { return std::isfinite(weight.product); });
}

bool has_exact_sums(const Scheme& scheme, const WeightShape& shape) {
  return group_length(scheme, shape) <= 2 || std::ranges::any_of(kAnchors, [&](const AnchorPair& anchors) {
           return integers_survive(scheme, shape, anchors, Zeros::any);
         });
}

Generated exact_sums(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed,
                     const std::vector<int64_t>& order) {
  const WeightShape& shape = synthetic.weight;
  const int64_t group = group_length(scheme, shape);
  const std::vector<AnchorPair> anchors = surviving_anchors(scheme, shape, Zeros::any);
  if (anchors.empty() && group > 2)
    throw std::logic_error("exact_sums: no maximum gives " + std::string(scheme.name()) +
                           " a scale that is a power of two");
  Floats w = exact_weight(shape, seed, group, anchors);
  const bool policy = synthetic.activation != kWeightOnly;
  std::optional<ActivationAnchors> of_x;
  const Planes own = policy ? policy_planes(scheme, shape, synthetic.activation, true) : Planes{};
  if (policy) of_x = activation_anchors(scheme, shape, synthetic.activation, own);
  // Columns with x's own anchors, the first two that are not the weight's, have weight zero.
  const auto is_of_x = [&](int64_t c) { return c % (of_x ? of_x->every : shape.k) / 2 == 1; };
  for (int64_t r = 0; policy && r < shape.n; ++r)
    for (int64_t c = 0; c < shape.k; ++c)
      if (is_of_x(c)) w.at(r, c) = 0;
  Generated made;
  made.exact_bits = kExactSumsBits;
  if (!order.empty()) w = reordered(w, order);
  made.input.planes = quantized(scheme, shape, w.bytes());
  triple_scales(made.input.planes);
  // At most 9 terms per row, each at most 3 * (3 + 3) * 2^1 units; the anchors' columns are not part of the
  // sums.
  Floats x(shape.dtype, synthetic.m, shape.k);
  constexpr int64_t kTerms = 9;
  for (int64_t i = 0; i < synthetic.m; ++i) {
    for (int64_t t = 0; t < kTerms; ++t) {
      const int64_t column =
          t == 0 ? shape.k - 1
                 : static_cast<int64_t>(splitmix64(seed + 1, static_cast<uint64_t>(i * kTerms + t)) %
                                        static_cast<uint64_t>(shape.k));
      if (column % group > 1) x.at(i, column) = (t + i) % 3 == 0 ? -1 : 1;
    }
  }
  made.input.planes.insert(made.input.planes.end(), own.begin(), own.end());
  for (int64_t i = 0; of_x && i < synthetic.m; ++i)
    for (int64_t c = 0; c < shape.k; ++c) {
      if (of_x->of_all != 0 && c < of_x->every)
        x.at(i, c) = c == 2 ? of_x->of_all : 0;
      else if (is_of_x(c))
        x.at(i, c) = c % 2 == 0 ? of_x->pair.low : of_x->pair.high;
    }
  if (!order.empty()) x = reordered(x, order);
  made.input.x = x.bytes();
  Floats bias(shape.dtype, 1, shape.n);
  for (int64_t r = 0; r < shape.n; ++r) bias.at(0, r) = static_cast<double>(r % 5 - 2) / 16;
  made.input.bias = bias.bytes();
  return made;
}

// In units of 1/16: y's type has p bits, so from 2^p to 2^(p+1) every odd number of units is a tie.
Generated tied_sums(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed) {
  const WeightShape& shape = synthetic.weight;
  const int bits = float_format(shape.dtype).mantissa_bits + 1;
  Generated made = exact_sums(scheme, synthetic, seed);
  made.exact_bits = bits + 2;
  Floats bias(shape.dtype, 1, shape.n);
  for (int64_t r = 0; r < shape.n; ++r) bias.at(0, r) = std::ldexp(r % 2 == 0 ? 1.5 : -1.5, bits - 4);
  made.input.bias = bias.bytes();
  return made;
}

bool has_outliers(const Scheme& scheme, const WeightShape& shape) {
  return group_length(scheme, shape) >= kLeastWithOutlier &&
         std::ranges::any_of(kAnchors, [&](const AnchorPair& anchors) {
           return integers_survive(scheme, shape, anchors, Zeros::none);
         });
}

// Columns of a group: two anchors, the outlier, whose weights are 0, then up to eight small elements. In half
// of the rows of x the other elements are small too, with weights of 0: kernels that handle a few elements
// separately have another path for many. The sums are those of exact_sums times the size of the small
// elements.
Generated outliers(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed) {
  struct Sizes {
    int outlier, small;  // exponents
  };
  // Small elements that do not fit in 32 bits below the outlier; that do not fit in 16, near the smallest
  // number with a finite reciprocal; the same near the largest number; and that have no 16 bits above the
  // smallest normal number. For float16: that do not fit in 24 bits.
  constexpr Sizes kHalf = {15, -9}, kSizes[] = {{30, -9}, {-99, -115}, {100, 80}, {-114, -116}};
  const WeightShape& shape = synthetic.weight;
  const int64_t group = group_length(scheme, shape), last = shape.k - group;
  const int64_t counted = std::min<int64_t>(group, 11);
  Floats w = exact_weight(shape, seed, group, surviving_anchors(scheme, shape, Zeros::none));
  for (int64_t r = 0; r < shape.n; ++r) {
    w.at(r, last + 2) = 0;
    for (int64_t c = counted; c < group; ++c) w.at(r, last + c) = 0;
  }
  Generated made;
  made.exact_bits = kExactSumsBits;
  made.input.planes = quantized(scheme, shape, w.bytes());
  triple_scales(made.input.planes);
  Floats x(shape.dtype, synthetic.m, shape.k);
  // A single row has the first size and many small elements in bfloat16, the second and few in float32.
  const int64_t turn = shape.dtype == DType::float32 ? 1 : 0;
  for (int64_t i = 0; i < synthetic.m; ++i) {
    const Sizes& sizes =
        shape.dtype == DType::float16 ? kHalf : kSizes[static_cast<size_t>(i + turn) % std::size(kSizes)];
    x.at(i, last + 2) = std::ldexp(1.0, sizes.outlier);
    const bool many = (i + i / 4 + turn) % 2 == 0;
    for (int64_t c = 3; c < (many ? group : counted); ++c)
      x.at(i, last + c) = std::ldexp((c + i) % 3 == 0 ? -1.0 : 1.0, sizes.small);
  }
  made.input.x = x.bytes();
  return made;
}

// In units of the smallest weight, 1/16, times the smallest x. The large terms are the product of a weight of
// 2 units and an x of 2^(p-1), so sums are below 2^23 units, and below 2^8 once both large terms are in.
Generated swamped(const Scheme& scheme, const Synthetic& synthetic, uint64_t seed) {
  constexpr int kPowers[] = {22, 12, 15, 18}, kSmallest = -6;  // 2^21 * 2^-6 is finite in float16
  constexpr int64_t kSmallTerms = 40, kBlock = 16;
  const WeightShape& shape = synthetic.weight;
  const int64_t group = group_length(scheme, shape), groups = shape.k / group;
  const AnchorPair anchors = surviving_anchors(scheme, shape, Zeros::none).at(0);
  Floats w = exact_weight(shape, seed, group, {anchors}), x(shape.dtype, synthetic.m, shape.k);
  for (int64_t i = 0; i < synthetic.m; ++i) {
    const int power = kPowers[static_cast<size_t>(i / 2) % std::size(kPowers)];
    const int64_t start = (i / 8 + groups - 1) % groups * group, first = 2;
    const int64_t last = (i % 2 == 0 ? group : std::min(group, kBlock)) - 1;
    const int64_t step = std::max<int64_t>(1, (last - first + kSmallTerms) / kSmallTerms);
    const auto put = [&](int64_t column, double value) {
      x.at(i, start + column) = std::ldexp(value, kSmallest);
    };
    put(first, std::ldexp(1.0, power - 1));
    for (int64_t c = first + 1; c < last; c += step) put(c, 1);
    put(last, -std::ldexp(1.0, power - 1));
    for (int64_t r = 0; r < shape.n; ++r) w.at(r, start + first) = w.at(r, start + last) = 0.125;
  }
  Generated made;
  made.exact_bits = kPowers[0];
  made.input.planes = quantized(scheme, shape, w.bytes());
  made.input.x = x.bytes();
  return made;
}

}  // namespace qcts
