// SPDX-License-Identifier: BSD-3-Clause
#include "suites/vectors/flags.h"

#include <algorithm>
#include <cmath>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr VectorFlagInfo kFlags[] = {
    {VectorFlag::tie, "tie", "a value lies exactly half way between two codes",
     "halves rounded away from zero, up or toward zero instead of to the even code"},
    {VectorFlag::scale_zero, "scale_zero",
     "a stored scale is 0, or the least one of a type that has no zero (e8m0: byte 0)",
     "0 / 0, or an infinite reciprocal, in a group of zeros or of very small numbers"},
    {VectorFlag::just_below_power_of_two, "just_below_power_of_two",
     "the largest magnitude of a group is the last number of its type before a power of two",
     "a scale that one rule rounds up to the next power of two and another does not"},
    {VectorFlag::negative_zero, "negative_zero", "an element is -0",
     "the sign of zero lost in a code, or invented"},
    {VectorFlag::infinity, "infinity", "an element is an infinity",
     "an infinity skipped by a maximum, clamped too early, or spread to another group"},
    {VectorFlag::nan, "nan", "an element is NaN",
     "NaN lost in a comparison, turned into a number, or spread to another group"},
    {VectorFlag::subnormal, "subnormal", "an element is subnormal",
     "subnormal numbers flushed to zero before they are quantized"},
};

// Is x halfway between its code and the next one, in units of its scale?
bool is_tie(double x, const ExactWeight& weight, const std::vector<double>& codes, bool integers) {
  if (!std::isfinite(x) || !std::isfinite(weight.scale) || weight.scale == 0) return false;
  const double value = (x - weight.zero) / weight.scale;
  if (value * weight.scale != x - weight.zero || !std::isfinite(weight.code)) return false;
  if (integers) return std::fabs(value - weight.code) == 0.5;
  const auto code = std::ranges::lower_bound(codes, weight.code);
  if (code == codes.end() || *code != weight.code || value == weight.code) return false;
  if (value > weight.code) return code + 1 != codes.end() && value == (*code + *(code + 1)) / 2;
  return code != codes.begin() && value == (*code + *(code - 1)) / 2;
}

bool has_tie(const Scheme& scheme, const WeightShape& shape, std::span<const double> x,
             const Planes& planes) {
  const CodeSet set = scheme.codes();
  if (set.values.empty() || !set.fixed) return false;
  std::vector<double> codes = set.values;
  std::erase_if(codes, [](double code) { return !std::isfinite(code); });
  std::ranges::sort(codes);
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  const bool integers = !scheme.params().element || !is_float(*scheme.params().element);
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  for (int64_t n = 0; n < shape.n; ++n) {
    scheme.exact_row(planes, shape, n, row);
    for (size_t k = 0; k < row.size(); ++k)
      if (is_tie(x[static_cast<size_t>(n) * row.size() + k], row[k], codes, integers)) return true;
  }
  return false;
}

bool has_zero_scale(const Planes& planes) {
  for (const Plane& plane : planes) {
    if (plane.name.find("scale") == std::string::npos || !has_float_elements(plane.dtype)) continue;
    const size_t step = plane.name == "scale_and_zero" ? 2 : 1;
    const size_t count = plane.bytes.size() / dtype_bytes(plane.dtype);
    for (size_t at = 0; at < count; at += step) {
      const bool is_zero = plane.dtype == DType::float8_e8m0fnu
                               ? plane.bytes[at] == std::byte{0}
                               : load_float(plane.dtype, plane.bytes, at) == 0;
      if (is_zero) return true;
    }
  }
  return false;
}

bool has_group_below_power(const Scheme& scheme, const WeightShape& shape, std::span<const double> x) {
  const FloatFormat& format = float_format(shape.dtype);
  const auto k = static_cast<size_t>(shape.k);
  const size_t group = scheme.group() > 0 ? static_cast<size_t>(scheme.group()) : k;
  for (size_t first = 0; first < x.size(); first += group) {
    double largest = 0;
    for (size_t i = first; i < std::min(first + group, x.size()); ++i)
      largest = std::max(largest, std::fabs(x[i]));
    if (!std::isfinite(largest) || largest < format.min_normal) continue;
    int exponent = 0;
    if (std::frexp(largest, &exponent) == 1 - format.unit_roundoff) return true;
  }
  return false;
}

}  // namespace

std::span<const VectorFlagInfo> vector_flags() { return kFlags; }

std::string_view flag_name(VectorFlag flag) { return kFlags[static_cast<size_t>(flag)].name; }

std::vector<VectorFlag> flags_of(const Scheme& scheme, const Matrix& weight, const Planes& planes) {
  const std::vector<double> x = load_doubles(weight.dtype, weight.bytes);
  const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
  const FloatFormat& format = float_format(weight.dtype);
  const auto any = [&](auto holds) { return std::ranges::any_of(x, holds); };
  std::vector<VectorFlag> flags;
  const auto add_if = [&](VectorFlag flag, bool holds) {
    if (holds) flags.push_back(flag);
  };
  add_if(VectorFlag::tie, has_tie(scheme, shape, x, planes));
  add_if(VectorFlag::scale_zero, has_zero_scale(planes));
  add_if(VectorFlag::just_below_power_of_two, has_group_below_power(scheme, shape, x));
  add_if(VectorFlag::negative_zero, any([](double v) { return v == 0 && std::signbit(v); }));
  add_if(VectorFlag::infinity, any([](double v) { return std::isinf(v); }));
  add_if(VectorFlag::nan, any([](double v) { return std::isnan(v); }));
  add_if(VectorFlag::subnormal, any([&](double v) { return v != 0 && std::fabs(v) < format.min_normal; }));
  return flags;
}

}  // namespace qcts
