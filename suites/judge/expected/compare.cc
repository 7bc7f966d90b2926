// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/expected/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>

#include "reference/dialects/classes/schema.h"
#include "reference/numerics/soft_float.h"

namespace qcts {
namespace {

uint64_t load_bits(const std::byte* element, size_t bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, element, bytes);
  return bits;
}

// Returns the size of the unit that is compared and changed at a time.
size_t element_bytes(DType dtype) { return std::max<size_t>(1, dtype_bits(dtype) / 8); }

bool same_element(DType dtype, const std::byte* a, const std::byte* b, size_t bytes) {
  if (std::memcmp(a, b, bytes) == 0) return true;
  return has_float_elements(dtype) && std::isnan(decode_float(dtype, load_bits(a, bytes))) &&
         std::isnan(decode_float(dtype, load_bits(b, bytes)));
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

std::string plane_text(const Plane& p) {
  return std::string(dtype_name(p.dtype)) + " " + shape_text(p.shape);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";  // printf prints the sign, which carries no information
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

// The outcome for one element of a bounded comparison.
enum class Judged { pass, fail, vacuous, unbounded };

// Returns |got - value| divided by the distance to the bound on that side; 0 if either is not usable.
double share_of_bound(const Bounded& want, double got) {
  if (!std::isfinite(got) || got == want.value) return 0;
  const double room = (got > want.value ? want.high : want.low) - want.value;
  return room == 0 ? std::numeric_limits<double>::infinity() : std::fabs((got - want.value) / room);
}

Judged judge_bounded(const Bounded& want, double got, double& ratio) {
  ratio = 0;
  if (std::isnan(want.value)) return std::isnan(got) ? Judged::pass : Judged::fail;
  if (std::isinf(want.value)) return got == want.value ? Judged::pass : Judged::fail;
  if (!(want.low <= want.high)) return Judged::vacuous;
  if (is_unbounded(want)) return Judged::unbounded;
  ratio = share_of_bound(want, got);
  return got >= want.low && got <= want.high ? Judged::pass : Judged::fail;
}

// NaN and infinities have to be met exactly (judge_bounded). If the bound is a single number, that is the
// wanted one.
std::string wanted_text(const Bounded& want) {
  if (!std::isfinite(want.value)) return number_text(want.value);
  if (want.low != want.high)
    return number_text(want.value) + " within [" + number_text(want.low) + ", " + number_text(want.high) +
           "]";
  return want.low == want.value ? number_text(want.low)
                                : number_text(want.low) + " (rounded from " + number_text(want.value) + ")";
}

}  // namespace

std::string describe_element(DType dtype, std::span<const std::byte> elements, uint64_t index) {
  const size_t bytes = element_bytes(dtype);
  const std::byte* element = elements.data() + index * bytes;
  std::string text = hex_of(element, bytes);
  if (has_float_elements(dtype))
    text += " (" + number_text(decode_float(dtype, load_bits(element, bytes))) + ")";
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
    result.problem =
        std::to_string(want.size()) + " bytes are not whole elements of " + std::to_string(bytes);
    return result;
  }
  result.total = want.size() / bytes;
  // Most blocks are equal, which one call of memcmp finds faster than a loop over elements.
  constexpr uint64_t kBlockElems = 512;
  for (uint64_t i = 0; i < result.total; ++i) {
    if (i % kBlockElems == 0) {
      const uint64_t end = std::min(result.total, i + kBlockElems);
      if (std::memcmp(want.data() + i * bytes, got.data() + i * bytes, (end - i) * bytes) == 0) {
        i = end - 1;
        continue;
      }
    }
    if (same_element(dtype, want.data() + i * bytes, got.data() + i * bytes, bytes)) continue;
    if (result.differing++ == 0) {
      result.first = i;
      result.want = describe_element(dtype, want, i);
      result.got = describe_element(dtype, got, i);
    }
  }
  return result;
}

std::vector<bool> wrong_elements(DType dtype, std::span<const std::byte> want,
                                 std::span<const std::byte> got) {
  const size_t bytes = element_bytes(dtype);
  std::vector<bool> wrong(want.size() / bytes);
  for (size_t i = 0; i < wrong.size(); ++i)
    wrong[i] = !same_element(dtype, want.data() + i * bytes, got.data() + i * bytes, bytes);
  return wrong;
}

namespace {

// The last dimension of a plane is across; packed elements count as bytes.
WrongMap map_of(const Plane& want, const Plane& got) {
  const std::vector<bool> wrong = wrong_elements(want.dtype, want.bytes, got.bytes);
  uint64_t rows = 1;
  for (size_t i = 0; i + 1 < want.shape.size(); ++i) rows *= static_cast<uint64_t>(want.shape[i]);
  const bool divides = rows > 0 && wrong.size() % rows == 0;
  return wrong_map(want.name, wrong, divides ? wrong.size() / rows : wrong.size());
}

std::optional<Mismatch> compare_all(const Planes& want, const Planes& got,
                                    const std::function<std::string(const Plane&, uint64_t byte)>& place) {
  if (want.empty()) return Mismatch{"planes", "at least one plane", "none to compare", 0, 0};
  if (want.size() != got.size())
    return Mismatch{"planes", std::to_string(want.size()) + " planes", std::to_string(got.size()) + " planes",
                    0, 0};
  Mismatch mismatch;
  for (size_t i = 0; i < want.size(); ++i) {
    const Plane &w = want[i], &g = got[i];
    if (w.name != g.name) return Mismatch{"plane " + std::to_string(i), w.name, g.name, 0, 0};
    if (w.dtype != g.dtype || w.shape != g.shape) return Mismatch{w.name, plane_text(w), plane_text(g), 0, 0};
    const Comparison compared = compare_bitwise(w.dtype, w.bytes, g.bytes);
    if (!compared.problem.empty())
      return Mismatch{w.name, "equal elements", compared.problem, 0, compared.total};
    mismatch.total += compared.total;
    if (compared.differing == 0) continue;
    if (mismatch.count == 0) {
      const size_t bytes = element_bytes(w.dtype);
      mismatch.where = w.name + ": " + place(w, compared.first * bytes);
      mismatch.want = hex_of(w.bytes.data() + compared.first * bytes, bytes);
      mismatch.got = hex_of(g.bytes.data() + compared.first * bytes, bytes);
      mismatch.map = map_of(w, g);
    }
    mismatch.count += compared.differing;
  }
  if (mismatch.count == 0) return std::nullopt;
  return mismatch;
}

}  // namespace

std::optional<Mismatch> compare_planes(const Scheme& scheme, const WeightShape& shape, Layout layout,
                                       const Planes& want, const Planes& got) {
  return compare_all(want, got, [&](const Plane& plane, uint64_t byte) {
    return scheme.place(shape, layout, plane.name, byte);
  });
}

std::optional<Mismatch> compare_activation_planes(const Planes& want, const Planes& got) {
  return compare_all(want, got, [](const Plane& plane, uint64_t byte) {
    const uint64_t element = byte / element_bytes(plane.dtype);
    const uint64_t columns = static_cast<uint64_t>(std::max<int64_t>(plane.shape.back(), 1));
    return "row " + std::to_string(element / columns) + ", k " + std::to_string(element % columns);
  });
}

bool is_unbounded(const Bounded& bounded) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return bounded.low == -kInfinity && bounded.high == kInfinity;
}

BoundedComparison compare_bounded(std::span<const Bounded> want, DType dtype,
                                  std::span<const std::byte> got) {
  BoundedComparison result;
  const size_t bytes = element_bytes(dtype);
  if (!has_float_elements(dtype)) {
    result.problem = "no bounded comparison for " + std::string(dtype_name(dtype));
    return result;
  }
  if (got.size() != want.size() * bytes) {
    result.problem =
        "want " + std::to_string(want.size()) + " elements, got " + std::to_string(got.size()) + " bytes";
    return result;
  }
  if (want.empty()) {
    result.problem = "no elements to compare";
    return result;
  }
  result.total = want.size();
  for (uint64_t i = 0; i < result.total; ++i) {
    double ratio = 0;
    const Judged judged = judge_bounded(want[i], load_float(dtype, got, i), ratio);
    result.worst = std::max(result.worst, ratio);
    if (judged == Judged::pass) continue;
    if (judged == Judged::vacuous) ++result.vacuous;
    if (judged == Judged::unbounded) ++result.unbounded;
    if (result.differing++ == 0) {
      result.first = i;
      result.want = wanted_text(want[i]);
      result.got = describe_element(dtype, got, i);
    }
  }
  return result;
}

std::vector<bool> wrong_elements(std::span<const Bounded> want, DType dtype, std::span<const std::byte> got) {
  std::vector<bool> wrong(want.size());
  double unused = 0;
  for (size_t i = 0; i < wrong.size(); ++i)
    wrong[i] = judge_bounded(want[i], load_float(dtype, got, i), unused) == Judged::fail;
  return wrong;
}

void perturb_element(DType dtype, std::span<std::byte> elements, uint64_t index) {
  const size_t bytes = element_bytes(dtype);
  std::byte* element = elements.data() + index * bytes;
  if (!has_float_elements(dtype)) {
    element[0] ^= std::byte{1};
    return;
  }
  uint64_t bits = load_bits(element, bytes);
  // The value after the largest finite one is an infinity or a NaN, which differs too.
  bits = std::isfinite(decode_float(dtype, bits)) ? bits + 1 : 0;
  std::memcpy(element, &bits, bytes);
}

bool bitwise_is_sensitive(DType dtype, std::span<const std::byte> want, uint64_t index) {
  std::vector<std::byte> changed(want.begin(), want.end());
  if (index >= changed.size() / element_bytes(dtype)) return false;
  perturb_element(dtype, changed, index);
  return compare_bitwise(dtype, want, changed).differing == 1;
}

}  // namespace qcts
