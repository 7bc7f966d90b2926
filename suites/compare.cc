#include "suites/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>

namespace qcts {
namespace {

// sign, exponent and mantissa of an IEEE-like type that fits 64 bits.
struct FloatLayout {
  int mantissa_bits = 0;
  int exponent_bits = 0;
  bool finite_only = false;  // e4m3fn: no infinities, NaN is all ones
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint64_t magnitude_mask() const { return (uint64_t{1} << (mantissa_bits + exponent_bits)) - 1; }
  uint64_t infinity() const { return ((uint64_t{1} << exponent_bits) - 1) << mantissa_bits; }
  bool is_nan(uint64_t magnitude) const {
    return finite_only ? magnitude == magnitude_mask() : magnitude > infinity();
  }
  bool is_infinite(uint64_t magnitude) const { return !finite_only && magnitude == infinity(); }
};

bool float_layout(DType dtype, FloatLayout& layout) {
  switch (dtype) {
    case DType::float64: layout = {52, 11, false}; return true;
    case DType::float32: layout = {23, 8, false}; return true;
    case DType::float16: layout = {10, 5, false}; return true;
    case DType::bfloat16: layout = {7, 8, false}; return true;
    case DType::float8_e4m3fn: layout = {3, 4, true}; return true;
    case DType::float8_e5m2: layout = {2, 5, false}; return true;
    default: return false;
  }
}

uint64_t load_bits(const std::byte* element, size_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, bytes);
  return bits;
}

// Bytes that are compared and changed as one.
size_t element_bytes(DType dtype) { return std::max<size_t>(1, dtype_bits(dtype) / 8); }

bool same_element(DType dtype, const std::byte* a, const std::byte* b, size_t bytes) {
  if (std::memcmp(a, b, bytes) == 0) return true;
  return is_float(dtype) && is_nan_element(dtype, a) && is_nan_element(dtype, b);
}

std::string hex_of(const std::byte* element, size_t bytes) {
  std::string text = "0x";
  char digits[3];
  for (size_t i = bytes; i-- > 0;) {
    std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(element[i]));
    text += digits;
  }
  return text;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

std::string plane_text(const Plane& p) { return std::string(dtype_name(p.dtype)) + " " + shape_text(p.shape); }

std::string number_text(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// What one element of a bounded comparison says.
enum class Judged { pass, fail, vacuous };

Judged judge_bounded(const Bounded& want, double got, double threshold, double& ratio) {
  ratio = 0;
  if (std::isnan(want.value)) return std::isnan(got) ? Judged::pass : Judged::fail;
  if (std::isinf(want.value)) return got == want.value ? Judged::pass : Judged::fail;
  if (!(want.bound >= 0) || std::isinf(want.bound)) return Judged::vacuous;
  if (std::isnan(got)) return Judged::fail;
  if (std::isinf(got)) {
    const double reach = got > 0 ? want.value + want.bound : -(want.value - want.bound);
    return reach >= threshold ? Judged::pass : Judged::fail;
  }
  const double error = std::fabs(got - want.value);
  ratio = error == 0 ? 0 : error / want.bound;
  return error <= want.bound ? Judged::pass : Judged::fail;
}

}  // namespace

bool is_float(DType dtype) {
  FloatLayout layout;
  return float_layout(dtype, layout);
}

bool is_nan_element(DType dtype, const std::byte* element) {
  FloatLayout layout;
  if (!float_layout(dtype, layout)) return false;
  return layout.is_nan(load_bits(element, dtype_bytes(dtype)) & layout.magnitude_mask());
}

double element_as_double(DType dtype, const std::byte* element) {
  FloatLayout layout;
  if (!float_layout(dtype, layout)) return std::numeric_limits<double>::quiet_NaN();
  const size_t bytes = dtype_bytes(dtype);
  const uint64_t bits = load_bits(element, bytes);
  if (dtype == DType::float64) {
    double value;
    std::memcpy(&value, element, 8);
    return value;
  }
  const uint64_t magnitude = bits & layout.magnitude_mask();
  const double sign = (bits >> (8 * bytes - 1)) & 1 ? -1.0 : 1.0;
  if (layout.is_nan(magnitude)) return std::numeric_limits<double>::quiet_NaN();
  if (layout.is_infinite(magnitude)) return sign * std::numeric_limits<double>::infinity();
  const int exponent = static_cast<int>(magnitude >> layout.mantissa_bits);
  const double fraction = static_cast<double>(magnitude & ((uint64_t{1} << layout.mantissa_bits) - 1));
  const int scale = 1 - layout.bias() - layout.mantissa_bits;
  if (exponent == 0) return sign * std::ldexp(fraction, scale);
  return sign * std::ldexp(fraction + std::ldexp(1.0, layout.mantissa_bits), exponent - 1 + scale);
}

double largest_finite(DType dtype) {
  FloatLayout layout;
  if (!float_layout(dtype, layout)) return 0;
  if (dtype == DType::float64) return std::numeric_limits<double>::max();
  if (dtype == DType::float8_e4m3fn) return 448;
  return std::ldexp(2.0 - std::ldexp(1.0, -layout.mantissa_bits), layout.bias());
}

double overflow_threshold(DType dtype) {
  FloatLayout layout;
  if (!float_layout(dtype, layout) || dtype == DType::float64) return std::numeric_limits<double>::infinity();
  return largest_finite(dtype) + std::ldexp(1.0, layout.bias() - layout.mantissa_bits - 1);
}

void store_rounded(DType dtype, double value, std::byte* element) {
  if (dtype == DType::float64) {
    std::memcpy(element, &value, 8);
    return;
  }
  if (dtype == DType::float32) {
    const float narrow = static_cast<float>(value);
    std::memcpy(element, &narrow, 4);
    return;
  }
  FloatLayout layout;
  float_layout(dtype, layout);
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  uint16_t bits;
  if (std::isnan(value)) {
    bits = static_cast<uint16_t>(layout.infinity() | uint64_t{1} << (layout.mantissa_bits - 1));
  } else if (std::fabs(value) >= overflow_threshold(dtype)) {
    bits = static_cast<uint16_t>(layout.infinity());
  } else {
    // The quantum of the binade (of the subnormals below it) counts mantissa steps; nearbyint rounds ties to even.
    int exponent = 0;
    std::frexp(value, &exponent);
    exponent = std::max(exponent - 1, 1 - layout.bias());
    const double steps = std::nearbyint(std::ldexp(std::fabs(value), layout.mantissa_bits - exponent));
    bits = static_cast<uint16_t>((static_cast<uint64_t>(exponent + layout.bias() - 1) << layout.mantissa_bits) +
                                 static_cast<uint64_t>(steps));
  }
  bits |= sign;
  std::memcpy(element, &bits, 2);
}

std::string describe_element(DType dtype, std::span<const std::byte> elements, uint64_t index) {
  const size_t bytes = element_bytes(dtype);
  const std::byte* element = elements.data() + index * bytes;
  std::string text = hex_of(element, bytes);
  if (is_float(dtype)) text += " (" + number_text(element_as_double(dtype, element)) + ")";
  return text;
}

Comparison compare_bitwise(DType dtype, std::span<const std::byte> want, std::span<const std::byte> got) {
  Comparison result;
  const size_t bytes = element_bytes(dtype);
  if (want.size() != got.size()) {
    result.problem = "want " + std::to_string(want.size()) + " bytes, got " + std::to_string(got.size());
    return result;
  }
  if (want.empty()) {
    result.problem = "no elements to compare";
    return result;
  }
  if (want.size() % bytes != 0) {
    result.problem = std::to_string(want.size()) + " bytes are not whole elements of " + std::to_string(bytes);
    return result;
  }
  result.total = want.size() / bytes;
  for (uint64_t i = 0; i < result.total; ++i) {
    if (same_element(dtype, want.data() + i * bytes, got.data() + i * bytes, bytes)) continue;
    if (result.differing++ == 0) {
      result.first = i;
      result.want = describe_element(dtype, want, i);
      result.got = describe_element(dtype, got, i);
    }
  }
  return result;
}

std::optional<Mismatch> compare_planes(const Scheme& scheme, const WeightShape& shape, std::string_view layout,
                                       const Planes& want, const Planes& got) {
  if (want.empty()) return Mismatch{"planes", "at least one plane", "none to compare", 0, 0};
  if (want.size() != got.size())
    return Mismatch{"planes", std::to_string(want.size()) + " planes", std::to_string(got.size()) + " planes", 0, 0};
  Mismatch mismatch;
  for (size_t i = 0; i < want.size(); ++i) {
    const Plane &w = want[i], &g = got[i];
    if (w.name != g.name) return Mismatch{"plane " + std::to_string(i), w.name, g.name, 0, 0};
    if (w.dtype != g.dtype || w.shape != g.shape) return Mismatch{w.name, plane_text(w), plane_text(g), 0, 0};
    const Comparison compared = compare_bitwise(w.dtype, w.bytes, g.bytes);
    if (!compared.problem.empty()) return Mismatch{w.name, "equal elements", compared.problem, 0, compared.total};
    mismatch.total += compared.total;
    if (compared.differing == 0) continue;
    if (mismatch.count == 0) {
      const size_t bytes = element_bytes(w.dtype);
      mismatch.where = w.name + ": " + scheme.place(shape, layout, w.name, compared.first * bytes);
      mismatch.want = hex_of(w.bytes.data() + compared.first * bytes, bytes);
      mismatch.got = hex_of(g.bytes.data() + compared.first * bytes, bytes);
    }
    mismatch.count += compared.differing;
  }
  if (mismatch.count == 0) return std::nullopt;
  return mismatch;
}

BoundedComparison compare_bounded(std::span<const Bounded> want, DType dtype, std::span<const std::byte> got) {
  BoundedComparison result;
  const size_t bytes = element_bytes(dtype);
  if (!is_float(dtype)) {
    result.problem = "no bounded comparison for " + std::string(dtype_name(dtype));
    return result;
  }
  if (got.size() != want.size() * bytes) {
    result.problem = "want " + std::to_string(want.size()) + " elements, got " + std::to_string(got.size()) + " bytes";
    return result;
  }
  if (want.empty()) {
    result.problem = "no elements to compare";
    return result;
  }
  result.total = want.size();
  const double threshold = overflow_threshold(dtype);
  for (uint64_t i = 0; i < result.total; ++i) {
    double ratio = 0;
    const Judged judged = judge_bounded(want[i], element_as_double(dtype, got.data() + i * bytes), threshold, ratio);
    result.worst = std::max(result.worst, ratio);
    if (judged == Judged::pass) continue;
    if (judged == Judged::vacuous) ++result.vacuous;
    if (result.differing++ == 0) {
      result.first = i;
      result.want = number_text(want[i].value) + " +- " + number_text(want[i].bound);
      result.got = describe_element(dtype, got, i);
    }
  }
  return result;
}

void perturb_element(DType dtype, std::span<std::byte> elements, uint64_t index) {
  const size_t bytes = element_bytes(dtype);
  std::byte* element = elements.data() + index * bytes;
  FloatLayout layout;
  if (!float_layout(dtype, layout)) {
    element[0] ^= std::byte{1};
    return;
  }
  uint64_t bits = load_bits(element, bytes);
  const uint64_t magnitude = bits & layout.magnitude_mask();
  const bool special = layout.is_nan(magnitude) || layout.is_infinite(magnitude);
  bits = special ? 0 : bits + 1;
  // One step beyond the largest finite value would be an infinity or a NaN, both of them real differences.
  std::memcpy(element, &bits, bytes);
}

bool bitwise_is_sensitive(DType dtype, std::span<const std::byte> want, uint64_t index) {
  std::vector<std::byte> changed(want.begin(), want.end());
  if (index >= changed.size() / element_bytes(dtype)) return false;
  perturb_element(dtype, changed, index);
  return compare_bitwise(dtype, want, changed).differing == 1;
}

}  // namespace qcts
