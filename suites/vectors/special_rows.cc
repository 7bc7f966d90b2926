// SPDX-License-Identifier: BSD-3-Clause
#include "suites/vectors/special_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate.h"

namespace qcts {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The values of one group of elements that share a scale.
using Values = std::vector<double>;

class RowMaker {
 public:
  RowMaker(const Scheme& scheme, const WeightShape& shape)
      : scheme_(scheme),
        shape_(shape),
        group_(static_cast<size_t>(scheme.group() > 0 ? std::min(scheme.group(), shape.k) : shape.k)),
        format_(float_format(shape.dtype)),
        codes_(finite_codes(scheme)) {
    add("probe", "", {});
    is_sparse_ = !is_accepted(rows_.front());
    rows_.clear();
  }

  std::vector<SpecialRow> rows() && {
    add_ordinary();
    add_ties();
    add_scales();
    add_zeros();
    add_not_finite();
    add_ends();
    add_shapes();
    return std::move(rows_);
  }

 private:
  static Values finite_codes(const Scheme& scheme) {
    Values codes = scheme.codes().values;
    std::erase_if(codes, [](double code) { return !std::isfinite(code); });
    std::ranges::sort(codes);
    codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
    return codes;
  }

  bool is_accepted(const SpecialRow& row) const {
    try {
      scheme_.quantize({shape_.dtype, shape_.n, shape_.k, row.weight});
      return true;
    } catch (const std::invalid_argument&) {
      return false;
    }
  }

  double largest_code() const { return codes_.empty() ? 127 : codes_.back(); }

  Values ordinary(uint64_t seed, double factor = 1) const {
    Values values(group_);
    for (size_t i = 0; i < group_; ++i) values[i] = noise(seed, i) * factor;
    return values;
  }

  // Noise below a largest magnitude, which is the element at `at`.
  Values below(double largest, uint64_t seed, size_t at = 5) const {
    Values values = ordinary(seed, largest / 8);
    values[at % group_] = largest;
    return values;
  }

  // Fills a row with these groups, and with ordinary ones where there are too few.
  void add(std::string name, std::string_view hunts, const std::vector<Values>& groups) {
    const auto k = static_cast<size_t>(shape_.k), n = static_cast<size_t>(shape_.n);
    std::vector<std::byte> weight(k * n * dtype_bytes(shape_.dtype));
    for (size_t row = 0; row < n; ++row)
      for (size_t i = 0; i < k; ++i) {
        const size_t group = (i / group_ + row) % std::max<size_t>(1, k / group_);
        double value = group < groups.size() ? groups[group][i % group_] : noise(77 + group, i);
        if (is_sparse_ && i % 4 >= 2) value = 0;
        store_float(shape_.dtype, weight, row * k + i, value);
      }
    rows_.push_back({std::move(name), hunts, std::move(weight)});
  }

  // Rows "NAME_0", "NAME_1", ... that hold all these groups.
  void add_all(const std::string& name, std::string_view hunts, const std::vector<Values>& groups) {
    const size_t in_row = std::max<size_t>(1, static_cast<size_t>(shape_.k) / group_);
    for (size_t first = 0, index = 0; first < groups.size(); first += in_row, ++index) {
      const auto begin = groups.begin() + static_cast<ptrdiff_t>(first);
      const auto count = static_cast<ptrdiff_t>(std::min(in_row, groups.size() - first));
      add(name + "_" + std::to_string(index), hunts, {begin, begin + count});
    }
  }

  void add_ordinary() {
    std::vector<Values> groups;
    for (const double factor : {1.0, 0x1p-7, 0x1p5, 0x1p-3, 3.0, 0.7, 0x1p-10, 100.0})
      groups.push_back(ordinary(1000 + groups.size(), factor));
    add_all("noise", "a wrong formula, a group or a row taken for another, nibbles swapped", groups);
    if (is_sparse_) return;  // the bisection below needs every element
    for (uint64_t seed = 0; seed < 3; ++seed)
      rows_.push_back({"steps_" + std::to_string(seed),
                       "a step between two codes that lies elsewhere: a division for a reciprocal, or a "
                       "scale in a narrower type",
                       boundary_weight(scheme_, shape_, seed + 1)});
  }

  // Every value halfway between two codes, where the scale is a power of two.
  void add_ties() {
    if (codes_.size() < 2 || !scheme_.codes().fixed) return;
    Values middles;
    for (size_t i = 1; i < codes_.size(); ++i) middles.push_back((codes_[i - 1] + codes_[i]) / 2);
    std::vector<Values> groups;
    for (const double factor : {1.0, 0x1p-4}) {
      for (size_t next = 0; next < middles.size() && groups.size() < 18;) {
        Values values(group_, 0.0);
        values[0] = codes_.front() * factor;
        values[1 % group_] = codes_.back() * factor;
        for (size_t i = 2; i < group_ && next < middles.size(); ++i) values[i] = middles[next++] * factor;
        groups.push_back(std::move(values));
      }
    }
    add_all("ties", "halves rounded away from zero, up, or toward zero instead of to the even code", groups);
  }

  double ulp_below(double value) const { return value * (1 - format_.unit_roundoff); }
  double ulp_above(double value) const { return value * (1 + 2 * format_.unit_roundoff); }

  void add_scales() {
    std::vector<Values> at, just_below, split, overflow;
    for (const double power : {1.0, 0x1p-9, 0x1p6, 2.0}) {
      at.push_back(below(power, 200 + at.size(), at.size()));
      just_below.push_back(below(-ulp_below(power), 300 + just_below.size(), 7 + just_below.size()));
    }
    add_all("power_of_two", "an exponent taken from the wrong side of a power of two", at);
    add_all("below_power_of_two", "a scale that is rounded up by one rule and not by another", just_below);
    for (const double mantissa : {1.25, 1.5, 1.75, 1.875})
      for (const double value : {ulp_below(mantissa), mantissa, ulp_above(mantissa)})
        split.push_back(below(value * 4, 400 + split.size()));
    add_all("scale_split", "floor, ceil, even and rceil confused: largest magnitudes around their borders",
            split);
    for (const double part : {1.0, 1.0625, 1.125, 1.25, 1.4375, 1.5})
      overflow.push_back(below(largest_code() * part, 500 + overflow.size()));
    add_all("largest_code", "a largest element that is clamped, or wraps, beyond the largest code", overflow);
  }

  void add_zeros() {
    const Values zeros(group_, 0.0), negative(group_, -0.0);
    add("zeros", "0 / 0 in a group of zeros, or its neighbour spoilt by it", {zeros, ordinary(601)});
    add("all_zeros", "0 / 0 where the whole weight is zero", std::vector<Values>(64, zeros));
    add("negative_zeros", "the sign of zero lost or invented", {negative, ordinary(602)});
    Values mixed = ordinary(603);
    for (size_t i = 0; i < group_; i += 3) mixed[i] = i % 2 ? 0.0 : -0.0;
    add("mixed_zeros", "the sign of zero lost or invented beside other values", {ordinary(604), mixed});
    Values tiny = below(4, 605);
    for (size_t i = 1; i < group_; i += 2) tiny[i] = i % 4 == 1 ? -0x1p-20 : 0x1p-20;
    add("rounds_to_zero", "the sign of a value that rounds to zero", {tiny, ordinary(606)});
  }

  void add_not_finite() {
    const std::string_view lost = "an infinity or NaN skipped, or spread to the next group";
    Values infinity = ordinary(701), minus = ordinary(702), nan = ordinary(703), both = ordinary(704);
    infinity[3 % group_] = kInfinity;
    minus[group_ - 1] = -kInfinity;
    nan[4 % group_] = kNan;
    both[1 % group_] = kInfinity;
    both[2 % group_] = kNan;
    add("infinity", lost, {infinity, ordinary(705)});
    add("minus_infinity", lost, {ordinary(706), minus});
    add("nan", lost, {nan, ordinary(707)});
    add("infinity_and_nan", lost, {both, ordinary(708)});
  }

  void add_ends() {
    std::vector<Values> small, large;
    for (const double value : {format_.min_subnormal, 3 * format_.min_subnormal, format_.min_normal,
                               format_.min_normal * 6, format_.min_normal * 0x1p9})
      small.push_back(below(value, 801 + small.size()));
    add_all("small", "subnormal numbers flushed, or a scale that becomes 0", small);
    for (const double value : {format_.max, -format_.max, format_.max / 2})
      large.push_back(below(value, 901 + large.size()));
    add_all("large", "a scale, or its reciprocal, beyond the range of its type", large);
  }

  void add_shapes() {
    Values positive = ordinary(1), negative = ordinary(2), single(group_, 0.0), constant(group_, 0.375),
           falling(group_), extreme = ordinary(3, 0.5);
    for (double& value : positive) value = 3 + std::fabs(value) / 4;
    for (double& value : negative) value = -3 - std::fabs(value) / 4;
    single[group_ - 1] = -1.5;
    extreme[6 % group_] = -8;
    extreme[7 % group_] = 7;
    for (size_t i = 0; i < group_; ++i)
      falling[i] = std::ldexp(i % 2 ? -1.5 : 1.0, -static_cast<int>(i % 40));
    add("one_sign", "a range that does not, or wrongly does, include zero", {positive, negative});
    add("single", "a largest magnitude that ignores signs or the last element", {single, ordinary(4)});
    add("constant", "a range of zero", {constant, ordinary(5)});
    add("falling", "small elements beside a large one", {falling, ordinary(6)});
    add("least_code", "the least code never reached, or reached where it must not be",
        {extreme, ordinary(7)});
  }

  const Scheme& scheme_;
  const WeightShape shape_;
  const size_t group_;
  const FloatFormat format_;
  const Values codes_;
  bool is_sparse_ = false;  // the scheme takes only weights with two zeros in every four elements
  std::vector<SpecialRow> rows_;
};

}  // namespace

std::vector<SpecialRow> special_rows(const Scheme& scheme, const WeightShape& shape) {
  return RowMaker(scheme, shape).rows();
}

}  // namespace qcts
