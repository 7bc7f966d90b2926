// SPDX-License-Identifier: BSD-3-Clause
#include "reference/oracle/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFloat32Roundoff = 0x1p-24;
constexpr double kFloat64Roundoff = 0x1p-53;

// A rounding model: |rounded - v| <= u*|v| + h.
struct Rounding {
  double u = 0, h = 0;
};

// Is every value of `source` a value of `target`?
bool holds(DType target, DType source) {
  const FloatFormat &t = float_format(target), &s = float_format(source);
  return t.mantissa_bits >= s.mantissa_bits && t.min_subnormal <= s.min_subnormal && t.max >= s.max;
}

// Does a processor that flushes lose subnormals of this type? x86's conversions to and from float16 ignore
// FTZ and DAZ (Intel SDM, VCVTPS2PH), and GPUs keep float16's subnormals.
bool may_flush(DType dtype, bool flush) { return flush && dtype != DType::float16; }

// Models rounding of a value that has no type yet.
Rounding rounding(DType dtype, bool flush) {
  const FloatFormat& format = float_format(dtype);
  return {format.unit_roundoff, may_flush(dtype, flush) ? format.min_normal : format.min_subnormal / 2};
}

Rounding rounding(std::optional<DType> cast, bool flush) {
  if (cast) return rounding(*cast, flush);
  // No rounding, but a processor that flushes also reads subnormals as zero; its registers are float32.
  return {0, flush ? float_format(DType::float32).min_normal : 0};
}

// Models rounding of elements of type `source` to `cast`.
Rounding cast_rounding(std::optional<DType> cast, DType source, bool flush) {
  Rounding r = rounding(cast, flush);
  if (cast && holds(*cast, source)) r = {0, may_flush(*cast, flush) ? r.h : 0};
  return r;
}

struct Stages {
  Rounding x, scale, weight, product, accumulator, partial;
  Rounding multiply;  // scale times a group's sum, in the accumulator's type (float32 for int32)
  std::optional<FusedSums> fused{};

  // The share of the magnitudes that n additions lose.
  double adding(double n) const { return fused ? fused_loss(n, *fused) : gamma(n, accumulator.u); }
};

constexpr int kFloat32FractionBits = 23;
constexpr double kZeroFactor = 0x1p-126;  // what a factor 0 of a fused product counts as

Stages roundings(const LinearStages& stages, const LinearDTypes& dtypes) {
  const bool flush = stages.flush_subnormals;
  Stages r;
  r.x = cast_rounding(stages.x_cast, dtypes.x, flush);
  r.scale = cast_rounding(stages.scale_cast, dtypes.scale, flush);
  r.weight = rounding(stages.weight_cast, flush);
  r.product = rounding(stages.product_cast, flush);
  r.partial = rounding(stages.partial_cast, flush);
  switch (stages.accumulator) {
    case DType::float32:
    case DType::float64:
      r.accumulator = r.multiply = rounding(stages.accumulator, flush);
      break;
    case DType::int32:
      r.multiply = rounding(DType::float32, flush);
      break;
    default:
      throw std::invalid_argument("accumulator is " + std::string(dtype_name(stages.accumulator)) +
                                  ", not float32, float64 or int32");
  }
  if (stages.fused) check_fused_sums(*stages.fused);
  if (stages.accumulator == DType::float32 && stages.fused) {
    r.fused = stages.fused;
    r.accumulator.h *= 2;  // cut, not rounded
  }
  return r;
}

// Returns sum|x|*|w' - w|, where w' are the weights that the kernel multiplies with: stages 2 and 3 of the
// header.
double weight_error(const LinearOracle& o, const LinearStages& stages, const Stages& r) {
  const double zeros = o.has_zero ? 1 : 0;
  const double scale = r.scale.u * (o.abs_product + o.abs_zero) + r.scale.h * (o.abs_code + zeros * o.abs_x);
  if (!stages.weight_cast) return scale + r.weight.h * o.abs_x;
  const double parts = o.abs_product + scale, whole = o.abs_weight + scale;
  const bool narrow = float_format(*stages.weight_cast).unit_roundoff > kFloat32Roundoff;
  double formed = zeros * r.weight.u * parts;
  if (narrow) formed = kFloat32Roundoff * (parts + zeros * whole);
  return scale + formed + r.weight.u * (whole + formed) + r.weight.h * o.abs_x;
}

// Returns the sum of |w'|, which bounds what is lost where x underflows.
double weight_mass(const LinearOracle& o, const Stages& r) {
  const double n = static_cast<double>(o.terms);
  const double scaled = o.sum_abs_weight * (1 + r.scale.u) + r.scale.h * (o.sum_abs_code + n);
  return scaled * (1 + r.weight.u + 3 * kFloat32Roundoff) + n * r.weight.h;
}

// Stages 1 to 5: weights are formed, then multiplied and summed.
double error_of_weighted_sum(const LinearOracle& o, const LinearStages& stages, const Stages& r) {
  const double n = static_cast<double>(o.terms);
  const double bias = stages.output_cast ? 0 : std::fabs(o.bias);
  double error = weight_error(o, stages, r);
  error += r.x.u * (o.abs_weight + error) + r.x.h * weight_mass(o, r);
  error += r.product.u * (o.abs_weight + error) + n * r.product.h;
  const double zeros = r.fused ? kZeroFactor * (o.abs_x + o.sum_abs_weight) : 0;
  error += r.adding(n + 1) * (o.abs_weight + error + bias + zeros) + n * r.accumulator.h;
  return error;
}

// Stages 1, 4, 5', 6', 2', 7': codes are summed first.
double error_of_scaled_sums(const LinearOracle& o, const Stages& r) {
  const double groups = static_cast<double>(o.groups);
  const double length = std::ceil(static_cast<double>(o.terms) / groups);
  const double parts = groups * (o.has_zero ? 2 : 1);
  const double magnitudes = o.abs_product + o.abs_zero;
  const double scales =
      o.sum_abs_scale + o.sum_abs_weight;  // each scale and zero, counted once per element of its group
  double error = r.x.u * magnitudes + r.x.h * o.sum_abs_weight;
  error += r.product.u * (magnitudes + error) + r.product.h * scales;
  // The largest |x| is at most sum|x|.
  const double zeros = r.fused ? kZeroFactor * (o.sum_abs_scale * o.abs_x + o.sum_abs_weight) : 0;
  error += r.adding(length) * (magnitudes + error + zeros) + r.accumulator.h * scales;

  if (o.scaled_x) {
    const double apart = o.group_coded + o.group_offset;
    error += (3 * r.multiply.u + r.partial.u) * (apart + error) + 3 * parts * r.multiply.h +
             r.partial.h * scales / length;
  }
  const double sums = o.group_product + o.group_zero;
  error += r.partial.u * (sums + error) + r.partial.h * scales / length;
  error += r.scale.u * (sums + error) + r.scale.h * (o.abs_code + o.abs_x);
  error += r.multiply.u * (sums + error) + parts * r.multiply.h;
  error += gamma(parts - 1, r.multiply.u) * (sums + error) + parts * r.multiply.h;
  return error;
}

struct Interval {
  double low = 0, high = 0;
};

Interval widened(Interval v, double by) {
  return {std::nextafter(v.low - by, -kInfinity), std::nextafter(v.high + by, kInfinity)};
}

// Returns the interval of all results of rounding its numbers.
Interval rounded(Interval v, DType dtype, bool flush) {
  v = {round_to(dtype, v.low), round_to(dtype, v.high)};
  const double min_normal = float_format(dtype).min_normal;
  if (may_flush(dtype, flush) && v.low > 0 && v.low < min_normal) v.low = 0;
  if (may_flush(dtype, flush) && v.high < 0 && v.high > -min_normal) v.high = 0;
  return v;
}

}  // namespace

double gamma(double n, double u) { return n * u < 1 ? n * u / (1 - n * u) : kInfinity; }

void check_fused_sums(const FusedSums& fused) {
  constexpr int kMaxTerms = 1024, kMaxFractionBits = 64;
  const auto require = [](bool possible, const char* field, int value) {
    if (!possible) throw std::invalid_argument(std::string(field) + " = " + std::to_string(value));
  };
  require(fused.terms > 0 && fused.terms <= kMaxTerms, "terms", fused.terms);
  require(fused.fraction_bits > 0 && fused.fraction_bits <= kMaxFractionBits, "fraction_bits",
          fused.fraction_bits);
  require(fused.result_bits > 0 && fused.result_bits <= kFloat32FractionBits, "result_bits",
          fused.result_bits);
  require(fused.promote_every >= 0 && fused.promote_every % fused.terms == 0, "promote_every",
          fused.promote_every);
}

double fused_loss(double n, const FusedSums& fused) {
  const double step =
      (fused.terms + 1) * std::ldexp(1.0, -fused.fraction_bits) + std::ldexp(1.0, -fused.result_bits);
  const double part = fused.promote_every == 0 ? n : std::min<double>(n, fused.promote_every);
  const double within = gamma(std::ceil(part / fused.terms), step);
  const double across = part == n ? 0 : gamma(std::ceil(n / part), kFloat32Roundoff);
  return (1 + within) * (1 + across) - 1;
}

int exact_fraction_bits(const LinearStages& stages) {
  if (stages.accumulator != DType::float32) return std::numeric_limits<int>::max();
  if (!stages.fused) return kFloat32FractionBits;
  return std::min(stages.fused->fraction_bits, stages.fused->result_bits);
}

LinearBound linear_bound(const LinearOracle& oracle, const LinearStages& stages, const LinearDTypes& dtypes) {
  const Stages r = roundings(stages, dtypes);
  if (!std::isfinite(oracle.y)) {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    return {nan, nan, nan, nan};
  }
  LinearBound bound;
  bound.error =
      stages.scale_after_sum ? error_of_scaled_sums(oracle, r) : error_of_weighted_sum(oracle, stages, r);
  // The oracle's y sums 2n rounded products and the bias; the sums above have at most 2n roundings too.
  const double own = gamma(2.0 * static_cast<double>(oracle.terms) + 4, kFloat64Roundoff);
  bound.error =
      bound.error * (1 + 2 * own) + own * (oracle.abs_product + oracle.abs_zero + std::fabs(oracle.bias));

  Interval sum = widened({oracle.y - oracle.bias, oracle.y - oracle.bias}, bound.error);
  if (stages.output_cast) sum = rounded(sum, *stages.output_cast, stages.flush_subnormals);
  if (oracle.bias != 0) {
    sum = widened({sum.low + oracle.bias, sum.high + oracle.bias}, 0);
    const bool in_cast = stages.output_cast && stages.bias_in_output_cast;
    const Rounding adding = in_cast ? rounding(*stages.output_cast, stages.flush_subnormals) : r.multiply;
    const double add = adding.u * std::max(std::fabs(sum.low), std::fabs(sum.high)) + adding.h;
    sum = widened(sum, add);
    bound.error += add;
  }
  sum = rounded(sum, dtypes.y, stages.flush_subnormals);
  bound.low = sum.low;
  bound.high = sum.high;
  bound.bound = std::max(sum.high - oracle.y, oracle.y - sum.low);
  return bound;
}

bool accepts(const LinearOracle& oracle, const LinearBound& bound, double got) {
  if (std::isnan(oracle.y)) return std::isnan(got);
  if (std::isinf(oracle.y)) return got == oracle.y;
  return got >= bound.low && got <= bound.high;
}

}  // namespace qcts
