// SPDX-License-Identifier: BSD-3-Clause
// The traits of values by which wrong elements may differ from right ones, for each operation.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>

#include "reference/numerics/soft_float.h"
#include "suites/judge/diagnosis/wrong_places.h"

namespace qcts {
namespace {

// Larger answers are described only by rows and columns, and much larger ones not at all: it would cost
// seconds.
constexpr int64_t kMaxElements = int64_t{1} << 20, kMaxPlaces = int64_t{1} << 23;

using Values = std::shared_ptr<const std::vector<double>>;
using IsOne = bool (*)(double value, const FloatFormat& format);

struct ValueTrait {
  const char* words;
  IsOne is;
};
constexpr ValueTrait kValueTraits[] = {
    {"is NaN", [](double v, const FloatFormat&) { return std::isnan(v); }},
    {"is infinite", [](double v, const FloatFormat&) { return std::isinf(v); }},
    {"is not finite", [](double v, const FloatFormat&) { return !std::isfinite(v); }},
    {"is -0", [](double v, const FloatFormat&) { return v == 0 && std::signbit(v); }},
    {"is 0", [](double v, const FloatFormat&) { return v == 0; }},
    {"is subnormal", [](double v, const FloatFormat& f) { return v != 0 && std::fabs(v) < f.min_normal; }},
    {"is subnormal or 0", [](double v, const FloatFormat& f) { return std::fabs(v) < f.min_normal; }},
    {"is the largest number of its type",
     [](double v, const FloatFormat& f) { return std::fabs(v) == f.max; }},
    {"is negative", [](double v, const FloatFormat&) { return v < 0; }},
    {"is positive", [](double v, const FloatFormat&) { return v > 0; }},
};

// Adds the traits of a value that each element has. `index` finds the element's value.
void add_values(const std::string& what, const Values& values, const FloatFormat& format,
                const std::function<size_t(const GridPlace&)>& index, std::vector<PlaceTrait>& traits) {
  for (const ValueTrait& trait : kValueTraits)
    traits.push_back({"where " + what + " " + trait.words,
                      [=](const GridPlace& p) { return trait.is((*values)[index(p)], format); }});
}

Values shared(std::vector<double> values) {
  return std::make_shared<const std::vector<double>>(std::move(values));
}

// The part of a row of x that one scale covers, or whole rows.
struct Stretch {
  Values x;
  int64_t k = 0, width = 0;

  std::span<const double> of(const GridPlace& place) const {
    const int64_t first = place.column * width, count = std::min(width, k - first);
    return std::span(*x).subspan(static_cast<size_t>(place.row * k + first), static_cast<size_t>(count));
  }
};

double largest(std::span<const double> values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::fabs(value));  // skips NaN
  return most;
}

void add_stretches(const std::string& what, const Stretch& stretch, const FloatFormat& format,
                   std::vector<PlaceTrait>& traits) {
  const auto add = [&](const std::string& words, std::function<bool(std::span<const double>)> is) {
    traits.push_back({"where " + what + " " + words, [=](const GridPlace& p) { return is(stretch.of(p)); }});
  };
  const auto any = [](auto is) {
    return [is](std::span<const double> values) { return std::ranges::any_of(values, is); };
  };
  const auto all = [](auto is) {
    return [is](std::span<const double> values) { return std::ranges::all_of(values, is); };
  };
  add("has a NaN", any([](double v) { return std::isnan(v); }));
  add("has an infinity", any([](double v) { return std::isinf(v); }));
  add("has a NaN or an infinity", any([](double v) { return !std::isfinite(v); }));
  add("is all zero", all([](double v) { return v == 0; }));
  add("has no normal number", all([=](double v) { return std::fabs(v) < format.min_normal; }));
  add("has no negative number", all([](double v) { return !(v < 0); }));
  add("has no positive number", all([](double v) { return !(v > 0); }));
  add("has only one sign", [](std::span<const double> values) {
    return std::ranges::all_of(values, [](double v) { return v > 0; }) ||
           std::ranges::all_of(values, [](double v) { return v < 0; });
  });
  add("has a largest magnitude just below a power of two", [](std::span<const double> values) {
    int exponent = 0;
    return std::frexp(largest(values), &exponent) >= 0.875;
  });
  add("has a power of two as its largest magnitude", [](std::span<const double> values) {
    int exponent = 0;
    return std::frexp(largest(values), &exponent) == 0.5;
  });
  add("has its largest magnitude in a negative number", [](std::span<const double> values) {
    const double most = largest(values);
    return std::ranges::none_of(values, [=](double v) { return v == most; });
  });
  for (const size_t width : {4U, 8U, 16U, 32U, 64U})
    add("has its largest magnitude in the last k % " + std::to_string(width) + " elements",
        [=](std::span<const double> values) {
          const double most = largest(values);
          return std::ranges::none_of(values.first(values.size() / width * width),
                                      [=](double v) { return std::fabs(v) == most; });
        });
}

// The same of whole rows, for the elements of a grid with a column for each element of x.
void add_rows(const std::string& what, const Values& x, int64_t k, const FloatFormat& format,
              std::vector<PlaceTrait>& traits) {
  std::vector<PlaceTrait> of_rows;
  add_stretches(what, {x, k, k}, format, of_rows);
  for (PlaceTrait& trait : of_rows)
    traits.push_back({std::move(trait.name), [holds = std::move(trait.holds)](const GridPlace& p) {
                        return holds({p.row, 0});
                      }});
}

// The codes that a quotient is rounded to: integers, or the finite values of a float type.
struct CodeGrid {
  std::vector<double> values;  // of floats, sorted, not negative; empty for integers
  double largest = 0;
};
CodeGrid code_grid(std::optional<DType> element, double largest) {
  CodeGrid grid{{}, largest};
  if (!element || !is_float(*element)) return grid;
  for (const double value : float_codes(*element).values)
    if (std::isfinite(value) && !std::signbit(value)) grid.values.push_back(value);
  std::ranges::sort(grid.values);
  grid.largest = grid.values.back();
  return grid;
}

// Is the quotient halfway between two codes, within the error of a float32 division?
bool is_tie(double quotient, const CodeGrid& codes) {
  double low = std::floor(quotient), high = low + 1;
  if (!codes.values.empty()) {
    const auto above = std::ranges::upper_bound(codes.values, quotient);
    if (above == codes.values.begin() || above == codes.values.end()) return false;
    low = *(above - 1);
    high = *above;
  }
  return std::fabs(quotient - (low + high) / 2) <= 0x1p-22 * quotient;
}

// Adds the traits of the value that is rounded to a code, x divided by its scale.
void add_quotients(const Values& quotients, const CodeGrid& codes,
                   const std::function<size_t(const GridPlace&)>& index, std::vector<PlaceTrait>& traits) {
  const auto add = [&](const std::string& words, auto is) {
    traits.push_back({"where the quotient by the scale " + words,
                      [=](const GridPlace& p) { return is(std::fabs((*quotients)[index(p)])); }});
  };
  add("is NaN", [](double q) { return std::isnan(q); });
  add("is halfway between two codes", [=](double q) { return is_tie(q, codes); });
  add("exceeds the largest code", [=](double q) { return q > codes.largest; });
  add("is not finite", [](double q) { return !std::isfinite(q); });
}

// The exact weights of all rows.
struct Weights {
  std::vector<double> codes, scales, zeros;
};
Weights weights_of(const KernelInput& input, const Planes& planes) {
  Weights all;
  std::vector<ExactWeight> row(static_cast<size_t>(input.weight.k));
  for (int64_t n = 0; n < input.weight.n; ++n) {
    input.scheme->exact_row(planes, input.weight, n, row);
    for (const ExactWeight& one : row) {
      all.codes.push_back(one.code);
      all.scales.push_back(one.scale);
      all.zeros.push_back(one.zero);
    }
  }
  return all;
}

bool is_same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

void add_codes(const std::string& what, const Scheme& scheme, const Values& codes,
               const std::function<size_t(const GridPlace&)>& index, std::vector<PlaceTrait>& traits) {
  const std::optional<DType> element = scheme.params().element;
  if (element && is_float(*element)) return add_values(what, codes, float_format(*element), index, traits);
  double least = HUGE_VAL, most = -HUGE_VAL;
  for (const double code : *codes) {
    least = std::min(least, code);
    most = std::max(most, code);
  }
  const auto add = [&](const std::string& words, auto is) {
    traits.push_back(
        {"where " + what + " " + words, [=](const GridPlace& p) { return is((*codes)[index(p)]); }});
  };
  add("is 0", [](double v) { return v == 0; });
  add("is the smallest, " + std::to_string(static_cast<int>(least)), [=](double v) { return v == least; });
  add("is the largest, " + std::to_string(static_cast<int>(most)), [=](double v) { return v == most; });
  add("is the smallest or the largest", [=](double v) { return v == least || v == most; });
  add("is negative", [](double v) { return v < 0; });
  add("is positive", [](double v) { return v > 0; });
  add("is odd", [](double v) { return std::fmod(v, 2) != 0; });
}

DType scale_type(const KernelInput& input) {
  const DType type = input.scheme->params().scale.value_or(input.weight.dtype);
  return is_float(type) ? type : DType::float32;
}

// Codes and scales of quantize, by their meaning. Wrong scales come first: wrong codes follow from them.
std::string places_in_weights(const KernelInput& input, const Planes& want, const Planes& got) {
  const Weights wanted = weights_of(input, want), is = weights_of(input, got);
  const int64_t n = input.weight.n, k = input.weight.k;
  const int64_t width = input.scheme->group() > 0 ? input.scheme->group() : k,
                groups = (k + width - 1) / width;
  const Values x = shared(load_doubles(input.weight.dtype, input.x));
  const FloatFormat& format = float_format(input.weight.dtype);
  WrongGrid scales{n, groups, std::vector<bool>(static_cast<size_t>(n * groups)), "group", 0};
  WrongGrid codes{n, k, std::vector<bool>(static_cast<size_t>(n * k)), "column", width};
  bool any_scale = false;
  for (int64_t i = 0; i < n * k; ++i) {
    const auto at = static_cast<size_t>(i);
    codes.wrong[at] = !is_same(wanted.codes[at], is.codes[at]);
    if (is_same(wanted.scales[at], is.scales[at]) && is_same(wanted.zeros[at], is.zeros[at])) continue;
    scales.wrong[static_cast<size_t>(i / k * groups + i % k / width)] = any_scale = true;
  }
  std::vector<PlaceTrait> traits;
  const auto index = [=](const GridPlace& p) { return static_cast<size_t>(p.row * k + p.column); };
  if (any_scale) {
    if (input.scheme->params().group_rows == 1)
      add_stretches(groups > 1 ? "the group" : "the row", {x, k, width}, format, traits);
    add_values(
        "the right scale", shared(wanted.scales), float_format(scale_type(input)),
        [=](const GridPlace& p) { return static_cast<size_t>(p.row * k + p.column * width); }, traits);
    const std::string text = describe_places(scales, traits);
    return text.empty() ? "" : "the scale or zero is " + text;
  }
  add_values("the weight", x, format, index, traits);
  add_codes("the right code", *input.scheme, shared(wanted.codes), index, traits);
  std::vector<double> quotients;
  for (size_t i = 0; i < x->size(); ++i) quotients.push_back((*x)[i] / wanted.scales[i]);
  add_quotients(shared(std::move(quotients)),
                code_grid(input.scheme->params().element, largest(wanted.codes)), index, traits);
  if (input.scheme->params().group_rows == 1) add_rows("the row", x, k, format, traits);
  const std::string text = describe_places(codes, traits);
  return text.empty() ? "" : "the codes are " + text;
}

uint64_t bits_at(const Plane& plane, size_t index, size_t step) {
  uint64_t bits = 0;
  std::memcpy(&bits, plane.bytes.data() + index * step, std::min(sizeof bits, step));
  return bits;
}

// The scale of each row of x, if the policy has one per row.
const Plane* scale_of_rows(const Planes& planes, int64_t m) {
  for (const Plane& plane : planes)
    if (plane.name == "scale" && is_float(plane.dtype) &&
        static_cast<int64_t>(plane.bytes.size() * 8) == m * static_cast<int64_t>(dtype_bits(plane.dtype)))
      return &plane;
  return nullptr;
}

// Adds the traits of x under a plane of quantize_activation with this many columns for the k of x.
void add_activation(const KernelInput& input, const Planes& want, int64_t columns,
                    std::vector<PlaceTrait>& traits) {
  const int64_t k = input.weight.k;
  const Values x = shared(load_doubles(input.x_dtype, input.x));
  const FloatFormat& format = float_format(input.x_dtype);
  if (columns < k)
    return add_stretches(columns > 1 ? "the part of x" : "the row of x", {x, k, k / columns}, format, traits);
  const auto index = [=](const GridPlace& p) { return static_cast<size_t>(p.row * k + p.column); };
  add_values("x", x, format, index, traits);
  if (const Plane* scale = scale_of_rows(want, input.m)) {
    const std::vector<double> scales = load_doubles(scale->dtype, scale->bytes);
    std::vector<double> quotients;
    for (size_t i = 0; i < x->size(); ++i) quotients.push_back((*x)[i] / scales[i / static_cast<size_t>(k)]);
    const DType code = want.front().dtype;
    add_quotients(shared(std::move(quotients)), code_grid(code, 127), index, traits);
  }
  add_rows("the row of x", x, k, format, traits);
}

// One plane, by its elements. In quantize_activation, its rows are those of x.
std::string places_in_plane(const KernelInput& input, const Planes& all, const Plane& want,
                            const Plane& got) {
  const size_t step = std::max<size_t>(1, static_cast<size_t>(dtype_bits(want.dtype)) / 8),
               count = want.bytes.size() / step;
  const int64_t rows = want.shape.empty() ? 1 : std::max<int64_t>(1, want.shape.front());
  const auto columns = static_cast<int64_t>(count) / rows;
  if (columns == 0 || static_cast<int64_t>(count) != rows * columns || got.bytes.size() != want.bytes.size())
    return "";
  WrongGrid grid{rows, columns, std::vector<bool>(count), "column", 0};
  for (size_t i = 0; i < count; ++i) grid.wrong[i] = bits_at(want, i, step) != bits_at(got, i, step);
  std::vector<PlaceTrait> traits;
  if (input.op == Op::quantize_activation && rows == input.m && input.weight.k % columns == 0)
    add_activation(input, all, columns, traits);
  if (is_float(want.dtype) && dtype_bits(want.dtype) >= 8)
    add_values(
        "the right " + want.name, shared(load_doubles(want.dtype, want.bytes)), float_format(want.dtype),
        [=](const GridPlace& p) { return static_cast<size_t>(p.row * columns + p.column); }, traits);
  std::set<uint64_t> wanted;
  for (size_t i = 0; i < count; ++i)
    if (grid.wrong[i]) wanted.insert(bits_at(want, i, step));
  if (wanted.size() == 1) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%0*llx", static_cast<int>(2 * step),
                  static_cast<unsigned long long>(*wanted.begin()));
    traits.push_back({"where the right element is " + std::string(hex), [&](const GridPlace& p) {
                        return wanted.contains(
                            bits_at(want, static_cast<size_t>(p.row * columns + p.column), step));
                      }});
  }
  const std::string text = describe_places(grid, traits);
  return text.empty() ? "" : want.name + " is " + text;
}

}  // namespace

std::string places_in_planes(const KernelInput& input, const Planes& want, const Planes& got) {
  try {
    if (want.size() != got.size()) return "";
    const int64_t rows = input.has_rows_of_x() ? input.m : input.weight.n;
    if (rows * input.weight.k > kMaxElements) return "";
    if (input.op == Op::quantize) return places_in_weights(input, want, got);
    // Codes come first in a scheme's planes, and follow from the others.
    for (size_t i = want.size(); i-- > 0;)
      if (first_difference(want[i], got[i])) return places_in_plane(input, want, want[i], got[i]);
  } catch (const std::exception&) {  // the planes have no meaning in this scheme
  }
  return "";
}

std::string places_in_y(const SeenAnswer& seen) {
  const KernelInput& input = seen.input;
  const int64_t rows = input.y_rows(), k = input.weight.k;
  const int64_t columns = input.op == Op::linear ? input.weight.n : k;
  if (rows * columns > kMaxPlaces || rows * columns == 0) return "";
  const std::vector<double> got = load_doubles(input.y_type(), seen.got);
  WrongGrid grid{rows, columns, std::vector<bool>(got.size()), "column",
                 input.op == Op::dequantize ? input.scheme->group() : 0};
  std::vector<double> wanted;
  for (size_t i = 0; i < got.size(); ++i) {
    const Bounded& want = seen.want[i];
    grid.wrong[i] = !(std::isnan(want.value)   ? std::isnan(got[i])
                      : std::isinf(want.value) ? got[i] == want.value
                                               : got[i] >= want.low && got[i] <= want.high);
    wanted.push_back(want.value);
  }
  std::vector<PlaceTrait> traits;
  const auto index = [=](const GridPlace& p) { return static_cast<size_t>(p.row * columns + p.column); };
  if (rows * columns > kMaxElements) return describe_places(grid, {});
  add_values("the right y", shared(std::move(wanted)), float_format(input.y_type()), index, traits);
  try {
    if (input.op == Op::linear) {
      add_rows("the row of x", shared(load_doubles(input.x_dtype, input.x)), k, float_format(input.x_dtype),
               traits);
    } else {
      const Weights weights = weights_of(input, input.planes);
      add_codes("the code", *input.scheme, shared(weights.codes), index, traits);
      add_values("the scale", shared(weights.scales), float_format(DType::float32), index, traits);
    }
  } catch (const std::exception&) {  // the planes have no meaning in this scheme
  }
  return describe_places(grid, traits);
}

}  // namespace qcts
