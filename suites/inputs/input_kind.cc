// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/input_kind.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "reference/numerics/soft_float.h"
#include "suites/inputs/generate_related.h"
#include "suites/inputs/generate_special.h"

namespace qcts {
namespace {

constexpr std::string_view kKindNames[] = {"reachable", "representable", "hostile"};

constexpr double kAboveAll = std::numeric_limits<double>::infinity();
constexpr ValueRange kAnything = {-kAboveAll, kAboveAll, true};

// The largest magnitudes of a group: of noise, of exact sums (which have anchors from 6 / 16 to 57344 / 8,
// or, in groups of two, only small integers), and of "overflow".
constexpr Magnitudes kOfNoise = {0x1p-19, 4}, kOfAnchors = {0.375, 7168}, kOfSmallIntegers = {0, 0.375},
                     kOfOverflow = {0.25, 4};

std::string codes_name(const std::vector<PlaneSpec>& specs) {
  const bool named = std::ranges::any_of(specs, [](const PlaneSpec& spec) { return spec.name == "qdata"; });
  return named ? "qdata" : specs.front().name;
}

bool is_scale_or_zero(const PlaneSpec& spec) {
  return spec.name != "qdata" && spec.name != "int_data" && has_float_elements(spec.dtype);
}

using Edit = std::function<ValueRange(const PlaneSpec&, ValueRange)>;

ValueRange times(ValueRange range, double least, double most) {
  const std::array<double, 4> ends = {range.min * least, range.min * most, range.max * least,
                                      range.max * most};
  return {std::ranges::min(ends), std::ranges::max(ends), range.nan};
}

// Returns the range after rounding to the dtype of the plane.
ValueRange stored(DType dtype, ValueRange range) {
  return {round_to(dtype, range.min), round_to(dtype, range.max), range.nan};
}

// Collects the ranges of planes that a generator edits after the recipe wrote them.
class Drawing {
 public:
  Drawing(const Scheme& scheme, const WeightShape& shape)
      : scheme_(scheme), shape_(shape), specs_(scheme.plane_specs(shape)) {}

  void edit(Magnitudes of, const std::function<bool(const PlaneSpec&)>& takes, const Edit& edited) {
    for (const WrittenCase& each : scheme_.written(shape_, kPlain, of))
      for (const WrittenRange& range : each.ranges)
        for (const PlaneSpec& spec : specs_)
          if (spec.name == range.plane && takes(spec)) {
            ranges_.push_back(range);
            ranges_.back().values = stored(spec.dtype, edited(spec, range.values));
          }
  }

  // plant_all_codes
  void all_codes(bool with_nan) {
    for (const PlaneSpec& spec : specs_)
      if (spec.name == codes_name(specs_))
        ranges_.push_back({range_name(spec.name), codes_of(spec, with_nan)});
  }

  // A value that the generator writes whatever the recipe wrote.
  void write(const PlaneSpec& spec, ValueRange values) { ranges_.push_back({range_name(spec.name), values}); }

  const std::vector<PlaneSpec>& specs() const { return specs_; }
  std::vector<WrittenRange> ranges() && { return std::move(ranges_); }

 private:
  // Returns the scheme's own text for the name, which outlives the specs.
  std::string_view range_name(const std::string& name) const {
    for (const WrittenCase& each : scheme_.written(shape_))
      for (const WrittenRange& range : each.ranges)
        if (range.plane == name) return range.plane;
    throw std::logic_error(std::string(scheme_.name()) + " does not say what it writes into " + name);
  }

  ValueRange codes_of(const PlaneSpec& spec, bool with_nan) const {
    const bool float8 = spec.dtype == DType::float8_e4m3fn || spec.dtype == DType::float8_e5m2;
    if (spec.dtype == DType::float8_e5m2) return {-kAboveAll, kAboveAll, with_nan};
    if (float8) return {-float_format(spec.dtype).max, float_format(spec.dtype).max, with_nan};
    if (has_float_elements(spec.dtype)) return kAnything;
    std::vector<double> values = scheme_.codes().values;
    if (!scheme_.codes().fixed && scheme_.params().element == DType::uint8)  // indices
      return {0, static_cast<double>(values.size() - 1)};
    return {std::ranges::min(values), std::ranges::max(values)};
  }

  const Scheme& scheme_;
  const WeightShape shape_;
  const std::vector<PlaneSpec> specs_;
  std::vector<WrittenRange> ranges_;
};

// A random mantissa below a float32 number's upper seven bits.
ValueRange scrambled(const PlaneSpec& spec, ValueRange range) {
  if (spec.dtype != DType::float32) return range;
  const ValueRange moved = times(range, 1 - 0x1p-7, 1 + 0x1p-7);
  return {std::min(moved.min, range.min), std::max(moved.max, 0x1p-133), range.nan};
}

// stretch_scales
ValueRange stretched(const PlaneSpec& spec, ValueRange range) {
  const FloatFormat& format = float_format(spec.dtype);
  const double least = format.min_normal * 0x1p-7, most = std::max(range.max, std::ldexp(format.max, -9));
  const bool nan = numel_of(spec.shape) > 8;
  return {range.min < 0 ? -most : std::min(range.min, least), most, nan};
}

bool has_tripled_scales(Generator generator) {
  return generator == Generator::exact_sums || generator == Generator::tied_sums ||
         generator == Generator::wide_sums || generator == Generator::outliers || is_relation(generator);
}

// The planes that linear's "non_finite" gives a NaN: float8 codes, otherwise scales.
void draw_nan(const WeightShape& shape, Drawing& drawing) {
  for (const PlaneSpec& spec : drawing.specs())
    if (spec.name == "qdata" && (spec.dtype == DType::float8_e4m3fn || spec.dtype == DType::float8_e5m2))
      return drawing.write(spec, {-float_format(spec.dtype).max, float_format(spec.dtype).max, true});
  drawing.edit(
      kOfNoise,
      [&](const PlaneSpec& spec) {
        const int64_t index = spec.shape.size() == 3 ? 2 : 1;
        return is_scale_or_zero(spec) && shape.n >= 2 && numel_of(spec.shape) > index;
      },
      [](const PlaneSpec&, ValueRange range) {
        range.nan = true;
        return range;
      });
}

void draw_block_scales(Drawing& drawing) {
  for (const PlaneSpec& spec : drawing.specs()) {
    if (spec.name != "scale") continue;
    if (spec.dtype == DType::float8_e4m3fn) drawing.write(spec, {0x1p-9, 448});
    if (spec.dtype == DType::float8_e8m0fnu) drawing.write(spec, {0x1p-100, 0x1p100});
  }
}

void draw_planes(const Scheme& scheme, Op op, const Synthetic& synthetic, Drawing& drawing) {
  const WeightShape& shape = synthetic.weight;
  const Generator generator = synthetic.generator;
  const std::string codes = codes_name(drawing.specs());
  const auto is_parameter = [&](const PlaneSpec& spec) {
    return has_float_elements(spec.dtype) && spec.name != codes;
  };
  if (generator == Generator::all_codes || generator == Generator::one_hot) {
    drawing.all_codes(op != Op::linear);
    drawing.edit(
        kOfNoise, [&](const PlaneSpec& spec) { return spec.dtype == DType::float32 && spec.name != codes; },
        scrambled);
  } else if (generator == Generator::extremes) {
    drawing.all_codes(false);
    drawing.edit(kOfNoise, is_parameter, stretched);
  } else if (op == Op::linear && has_tripled_scales(generator)) {
    const int64_t group = scheme.group() == 0 ? shape.k : scheme.group();
    drawing.edit(group <= 2 ? kOfSmallIntegers : kOfAnchors, is_parameter,
                 [](const PlaneSpec& spec, ValueRange range) {
                   return spec.dtype == DType::float8_e8m0fnu ? times(range, 2, 4) : times(range, 3, 3);
                 });
  } else if (generator == Generator::tiny_scales) {
    drawing.edit(kOfNoise, is_scale_or_zero,
                 [](const PlaneSpec&, ValueRange range) { return times(range, 0x1p-122, 0x1p-60); });
  } else if (generator == Generator::overflow) {
    drawing.edit(kOfOverflow, is_scale_or_zero,
                 [](const PlaneSpec&, ValueRange range) { return times(range, 1, 0x1p126); });
  } else if (generator == Generator::odd_scales) {
    const auto may_be = [](const PlaneSpec& spec) { return may_be_odd(spec.name, spec.dtype); };
    drawing.edit(kOfNoise, may_be, [](const PlaneSpec& spec, ValueRange range) {
      const double most = std::max(std::fabs(range.min), std::fabs(range.max));
      const double least = spec.dtype == DType::float8_e8m0fnu ? 0x1p-127 : -most;
      return ValueRange{least, most * odd_factor(spec.dtype), range.nan};
    });
  } else if (generator == Generator::nan_scales) {
    for (const PlaneSpec& spec : drawing.specs())
      if (may_be_nan(spec)) drawing.write(spec, kAnything);
  } else if (generator == Generator::block_scales) {
    draw_block_scales(drawing);
  } else if (generator == Generator::non_finite) {
    draw_nan(shape, drawing);
  } else if (spreads_zero_points(scheme, op, generator)) {
    for (const PlaneSpec& spec : drawing.specs())
      if (spec.name == "zero_point" || spec.name == "zero_points")
        if (!has_float_elements(spec.dtype))
          drawing.write(spec, {static_cast<double>(scheme.params().code_min),
                               static_cast<double>(scheme.params().code_max)});
  }
}

std::vector<WrittenRange> ranges_of_plane(const std::vector<WrittenRange>& ranges, std::string_view plane,
                                          int first) {
  std::vector<WrittenRange> found;
  for (const WrittenRange& range : ranges)
    if (range.plane == plane && range.first == first) found.push_back(range);
  std::ranges::sort(found, {}, [](const WrittenRange& range) { return range.values.min; });
  return found;
}

// Is nothing of this type between the two numbers?
bool are_next(DType dtype, double low, double high) {
  if (high <= low) return true;
  if (!has_float_elements(dtype)) return high <= low + 1;
  if (dtype == DType::float8_e8m0fnu) return high <= 2 * low;
  return low == 0 && high <= float_format(dtype).min_subnormal;
}

bool covers(const std::vector<WrittenRange>& written, DType dtype, const ValueRange& drawn) {
  if (drawn.nan && std::ranges::none_of(written, [](const WrittenRange& range) { return range.values.nan; }))
    return false;
  double at = -kAboveAll;  // everything up to here is written
  for (const WrittenRange& range : written) {
    if (range.values.min > range.values.max) continue;
    if (at == -kAboveAll ? range.values.min <= drawn.min : are_next(dtype, at, range.values.min))
      at = std::max(at, range.values.max);
    else if (range.values.min <= drawn.min)
      at = range.values.max;
  }
  return drawn.max <= at;
}

}  // namespace

std::string_view input_kind_name(InputKind kind) { return kKindNames[static_cast<size_t>(kind)]; }

std::optional<InputKind> find_input_kind(std::string_view name) {
  const auto* const found = std::ranges::find(kKindNames, name);
  if (found == std::end(kKindNames)) return std::nullopt;
  return static_cast<InputKind>(found - std::begin(kKindNames));
}

std::vector<WrittenRange> drawn_ranges(const Scheme& scheme, Op op, const Synthetic& synthetic) {
  if (op == Op::quantize) return {};
  Drawing drawing(scheme, synthetic.weight);
  if (op != Op::quantize_activation) draw_planes(scheme, op, synthetic, drawing);
  std::vector<WrittenRange> ranges = std::move(drawing).ranges();
  if (synthetic.generator == Generator::given_scales)
    for (const WrittenRange& range : scheme.policy_ranges(synthetic.weight, synthetic.activation))
      if (is_given_scale(range.plane)) {
        const double scale = given_scale(synthetic.m);
        ranges.push_back({range.plane, std::isnan(scale) ? kNanAlone : ValueRange{scale, scale}});
      }
  return ranges;
}

KindOfInput kind_of_input(const Scheme& scheme, Op op, const Synthetic& synthetic) {
  const std::vector<WrittenRange> drawn = drawn_ranges(scheme, op, synthetic);
  KindOfInput found;
  if (drawn.empty()) return found;
  std::vector<WrittenRange> written = scheme.policy_ranges(synthetic.weight, synthetic.activation);
  for (const WrittenCase& each : scheme.written(synthetic.weight))
    written.insert(written.end(), each.ranges.begin(), each.ranges.end());
  std::vector<PlaneSpec> specs = scheme.plane_specs(synthetic.weight);
  for (PlaneSpec& spec : scheme.policy_specs(synthetic.weight, synthetic.activation)) specs.push_back(spec);
  for (const WrittenRange& range : drawn) {
    const PlaneSpec& spec = *std::ranges::find(specs, range.plane, &PlaneSpec::name);
    const std::vector<WrittenRange> own = ranges_of_plane(written, range.plane, range.first);
    if (covers(own, spec.dtype, range.values)) continue;
    const bool finite =
        !range.values.nan && std::isfinite(range.values.min) && std::isfinite(range.values.max);
    const InputKind kind = finite ? InputKind::representable : InputKind::hostile;
    if (kind <= found.kind) continue;
    found.kind = kind;
    found.outside = spec.name + ": draws " + described(range.values) + ", the recipe writes ";
    for (const WrittenRange& each : own)
      found.outside += (&each == &own[0] ? "" : ", ") + described(each.values);
  }
  return found;
}

}  // namespace qcts
