// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/written.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

double scale_of(const AffineRecipe& recipe, double low, double high) {
  const std::array<float, 2> block = {static_cast<float>(low), static_cast<float>(high)};
  return choose_affine(recipe, block).scale;
}

// The lowest code: code_min, except for symmetric weights of one bit. Their scale is twice the largest
// magnitude, so w / scale rounds to -0, unless the reciprocal of the scale is subnormal and was rounded up.
double least_code(const AffineRecipe& recipe, double largest_scale) {
  const bool one_bit = recipe.mapping == Mapping::symmetric && recipe.code_max - recipe.code_min == 1;
  return one_bit && 1 / largest_scale >= float_format(recipe.scale).min_normal ? 0 : recipe.code_min;
}

WrittenCase affine_case(std::string_view when, std::string_view evidence, ValueRange codes, ValueRange scales,
                        ValueRange zeros) {
  return {when, evidence, {{"qdata", codes}, {"scale", scales}, {"zero_point", zeros}}};
}

}  // namespace

bool ValueRange::holds(double value) const { return std::isnan(value) ? nan : min <= value && value <= max; }

std::string described(const ValueRange& range) {
  if (range.min > range.max) return "NaN";
  const std::string numbers =
      range.min == range.max ? text_of(range.min) : text_of(range.min) + " .. " + text_of(range.max);
  return numbers + (range.nan ? " and NaN" : "");
}

Magnitudes any_finite(DType dtype) { return {0, float_format(dtype).max}; }

Written written_affine(const AffineRecipe& recipe, Magnitudes of, std::string_view evidence) {
  const double n = recipe.code_min, p = recipe.code_max;
  if (recipe.mapping == Mapping::symmetric_no_clipping && p == 0)
    return {affine_case("a largest weight above 0 is divided by the largest code, 0", evidence, kZero,
                        kInfinite, kZero),
            affine_case("a largest weight of 0 is divided by the largest code, 0", evidence, kZero, kNanAlone,
                        kZero)};
  const bool asymmetric = recipe.mapping == Mapping::asymmetric;
  const double max = float_format(recipe.input).max;
  // Spans up to max do not overflow, nor do symmetric weights of one bit up to max / 2.
  double largest = scale_of(recipe, asymmetric ? -of.most : 0, of.most);
  const bool overflows = std::isinf(largest);
  if (overflows) largest = scale_of(recipe, 0, asymmetric ? max : max / 2);
  const bool divides_low = recipe.mapping == Mapping::symmetric_no_clipping;  // by the larger number
  const double least = scale_of(recipe, divides_low ? -of.least : 0, divides_low ? 0 : of.least);
  Written written;
  written.push_back(affine_case("", evidence, {least_code(recipe, largest), p}, {least, largest},
                                asymmetric ? ValueRange{n, p} : kZero));
  if (overflows)
    written.push_back(affine_case(
        asymmetric ? "max - min overflows the weight's type, and everything becomes the lowest code"
                   : "twice the largest weight overflows the weight's type",
        evidence, asymmetric ? ValueRange{n, n} : kZero, kInfinite, asymmetric ? ValueRange{n, n} : kZero));
  return written;
}

}  // namespace qcts
