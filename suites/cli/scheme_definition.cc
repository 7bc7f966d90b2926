// SPDX-License-Identifier: BSD-3-Clause
#include "suites/cli/scheme_definition.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "reference/numerics/noise.h"
#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/choices.h"
#include "suites/inputs/input_kind.h"
#include "suites/inputs/inputs.h"

namespace qcts::cli {
namespace {

constexpr WeightShape kProbes[] = {
    {DType::bfloat16, 256, 1024}, {DType::bfloat16, 512, 3072}, {DType::bfloat16, 768, 5120}};

// A weight type that the scheme takes in every probe.
std::optional<DType> some_dtype(const Scheme& scheme, Layout layout) {
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16})
    if (std::ranges::all_of(kProbes, [&](WeightShape shape) {
          shape.dtype = dtype;
          return !scheme.refusal(shape, layout);
        }))
      return dtype;
  return std::nullopt;
}

// Returns "k / 2" for the sizes that are half of k in each probe; "" if no expression fits.
std::string times(const std::vector<int64_t>& sizes, const std::string& symbol,
                  int64_t (*base)(const WeightShape&)) {
  const int64_t first = base(kProbes[0]), common = std::gcd(first, sizes[0]);
  const int64_t by = sizes[0] / common, over = first / common;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] * over != base(kProbes[i]) * by) return "";
  return symbol + (by == 1 ? "" : " * " + std::to_string(by)) +
         (over == 1 ? "" : " / " + std::to_string(over));
}

std::string symbolic_size(const std::vector<int64_t>& sizes) {
  if (std::ranges::all_of(sizes, [&](int64_t size) { return size == sizes[0]; }))
    return std::to_string(sizes[0]);
  for (const auto& text : {times(sizes, "n", [](const WeightShape& shape) { return shape.n; }),
                           times(sizes, "k", [](const WeightShape& shape) { return shape.k; }),
                           times(sizes, "n * k", [](const WeightShape& shape) { return shape.n * shape.k; })})
    if (!text.empty()) return text;
  throw std::logic_error("the shape of a plane follows no formula of n and k");
}

std::string symbolic_shape(const std::vector<std::vector<PlaneSpec>>& probes, size_t plane) {
  std::string text = "[";
  for (size_t axis = 0; axis < probes[0][plane].shape.size(); ++axis) {
    std::vector<int64_t> sizes;
    for (const std::vector<PlaneSpec>& specs : probes) sizes.push_back(specs[plane].shape.at(axis));
    text += (axis == 0 ? "" : ", ") + symbolic_size(sizes);
  }
  return text + "]";
}

// Does the plane have the type of the weight, whatever that is?
bool follows_weight(const Scheme& scheme, Layout layout, size_t plane) {
  size_t asked = 0;
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16}) {
    WeightShape shape = kProbes[0];
    shape.dtype = dtype;
    if (scheme.refusal(shape, layout)) continue;
    ++asked;
    if (scheme.plane_specs(shape, layout).at(plane).dtype != dtype) return false;
  }
  return asked > 1;
}

// A weight of noise that every scheme takes: two of four elements along k are 0.
Planes planes_of_noise(const Scheme& scheme, const WeightShape& shape) {
  std::vector<std::byte> bytes(bytes_of(shape.dtype, std::vector<int64_t>{shape.n, shape.k}));
  for (int64_t i = 0; i < shape.n * shape.k; ++i)
    store_float(shape.dtype, bytes, i, i % 4 < 2 ? noise(1, static_cast<uint64_t>(i)) : 0.0);
  return scheme.quantize({shape.dtype, shape.n, shape.k, bytes});
}

const Plane* plane_named(const Planes& planes, std::initializer_list<std::string_view> names) {
  for (const Plane& plane : planes)
    if (std::ranges::find(names, std::string_view(plane.name)) != names.end()) return &plane;
  return nullptr;
}

// One row as the reference reads it, next to the elements of the planes that decode it.
class ReadRow {
 public:
  ReadRow(const Scheme& scheme, const WeightShape& shape, const Planes& planes)
      : scheme_(scheme), shape_(shape), exact_(static_cast<size_t>(shape.k)), codes_(exact_.size(), -1) {
    scheme.exact_row(planes, shape, 0, exact_);
    if (!scheme.codes().values.empty()) scheme.row_codes(planes, shape, 0, codes_);
  }

  // Does each of these hold for every element that has a code?
  bool codes_are_values(int64_t less) const {
    const std::vector<double> values = scheme_.codes().values;
    return all([&](size_t k) {
      return exact_[k].code == values.at(static_cast<size_t>(codes_[k])) - static_cast<double>(less);
    });
  }
  bool scales_are(const Plane& plane) const {
    return all([&](size_t k) { return exact_[k].scale == at(plane, k, 0); });
  }
  bool zeros_are(const Plane& plane, int64_t offset) const {
    return all([&](size_t k) { return exact_[k].zero == at(plane, k, offset); });
  }
  bool zeros_are_0() const {
    return all([&](size_t k) { return exact_[k].zero == 0; });
  }

 private:
  template <typename Holds>
  bool all(Holds holds) const {
    bool any = false;
    for (size_t k = 0; k < exact_.size(); ++k) {
      if (codes_[k] < 0) continue;
      if (!holds(k)) return false;
      any = true;
    }
    return any;
  }
  double at(const Plane& plane, size_t k, int64_t offset) const {
    const int64_t index = scheme_.element_of(shape_, plane.name, 0, static_cast<int64_t>(k)) + offset;
    return load_float(plane.dtype, plane.bytes, index);
  }

  const Scheme& scheme_;
  const WeightShape shape_;
  std::vector<ExactWeight> exact_;
  std::vector<int> codes_;
};

// Adds 1 to every zero point, which are 0, and returns whether the codes follow.
bool reads_zero_points(const Scheme& scheme, const WeightShape& shape, Planes planes) {
  for (Plane& plane : planes) {
    if (!plane.name.starts_with("zero_point")) continue;
    const size_t size = plane.bytes.size() / bytes_of(plane.dtype, std::vector<int64_t>{1});
    for (size_t i = 0; i < size; ++i) plane.bytes[i * (plane.bytes.size() / size)] = std::byte{1};
  }
  return ReadRow(scheme, shape, planes).codes_are_values(1);
}

// The formula, if the reference reads a weight of noise by it; otherwise the file that defines it.
std::string formula(const Scheme& scheme, const WeightShape& shape) {
  if (!scheme.quantizes_weight()) return "the plane is the weight itself";
  const Planes planes = planes_of_noise(scheme, shape);
  const ReadRow row(scheme, shape, planes);
  const Plane *scale = plane_named(planes, {"scale", "scales"}),
              *both = plane_named(planes, {"scale_and_zero"}),
              *zero = plane_named(planes, {"zero_point", "zero_points"});
  const ZeroPointKind kind = scheme.params().zero_point;
  const std::string elsewhere = "reference/schemes/" + std::string(scheme.family()) + ".cc defines it";
  constexpr int64_t kMiddle = 8;
  if (both != nullptr && row.codes_are_values(kMiddle) && row.scales_are(*both) && row.zeros_are(*both, 1))
    return "w = (value(code) - 8) * scale_and_zero[..., 0] + scale_and_zero[..., 1]";
  if (scale == nullptr || !row.scales_are(*scale)) return elsewhere;
  if (kind == ZeroPointKind::floating)
    return zero != nullptr && row.codes_are_values(0) && row.zeros_are(*zero, 0)
               ? "w = value(code) * " + scale->name + " + " + zero->name
               : elsewhere;
  if (!row.zeros_are_0()) return elsewhere;
  if (zero != nullptr && reads_zero_points(scheme, shape, planes))
    return "w = (value(code) - " + zero->name + ") * " + scale->name;
  if (!row.codes_are_values(0)) return elsewhere;
  return "w = value(code) * " + scale->name + (zero == nullptr ? "" : "; " + zero->name + " is not used");
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

std::string codes_text(const Scheme& scheme) {
  const CodeSet codes = scheme.codes();
  if (codes.values.empty()) return "not a finite set";
  std::string text = std::to_string(codes.values.size()) + " values in the order of their bits: ";
  constexpr size_t kShown = 16;
  for (size_t i = 0; i < std::min(codes.values.size(), kShown); ++i)
    text += (i == 0 ? "" : " ") + number(codes.values[i]);
  return text + (codes.values.size() > kShown ? " ..., the last " + number(codes.values.back()) : "");
}

// Where the codes of row 0 are, in elements of the first plane. Two codes of a byte are two elements.
std::string order_text(const Scheme& scheme, const WeightShape& shape) {
  const std::string name = scheme.plane_specs(shape).front().name;
  std::string text;
  for (int64_t k = 0; k < 4; ++k)
    text += (k == 0 ? "" : ", ") + std::to_string(scheme.element_of(shape, name, 0, k));
  const int64_t row = scheme.element_of(shape, name, 1, 0);
  const bool in_pairs =
      2 * scheme.plane_specs(shape).front().bytes() == static_cast<uint64_t>(shape.n * shape.k) &&
      scheme.params().bits <= 4;
  return "w[0, 0 .. 3] are the codes " + text + " of " + name + ", and w[1, 0] is code " +
         std::to_string(row) +
         (in_pairs ? "; code 2i is the low nibble of byte i, code 2i + 1 the high one" : "");
}

// Returns how a layout pads, or "". Its shapes do not show it, because the probes need no padding.
std::string padding_text(std::string_view layout) {
  if (!layout.starts_with("tile_packed_4d")) return "";
  return "before quantization, n is padded to a multiple of 8 and k to a multiple of 1024 with zero weights: "
         "padded codes are 0, and a group that is all padding gets the smallest scale, and a zero of 8 times "
         "that scale";
}

// Returns the policies under which the reference reads a bound of x, which a file may add to a weight.
std::string policies_that_read(const Scheme& scheme, const WeightShape& shape, std::string_view bound,
                               double value) {
  if (!scheme.quantizes_weight()) return "";
  Planes planes = planes_of_noise(scheme, shape);
  const size_t count = static_cast<size_t>(shape.k);
  std::vector<std::byte> x(count * dtype_bytes(shape.dtype));
  for (size_t i = 0; i < count; ++i) store_float(shape.dtype, x, i, noise(2, i));
  const Matrix row{shape.dtype, 1, shape.k, x};
  Plane plane{std::string(bound), DType::float64, {}, std::vector<std::byte>(sizeof value)};
  std::memcpy(plane.bytes.data(), &value, sizeof value);
  std::string found;
  for (const Policy policy : scheme.activations()) {
    if (policy == kWeightOnly || !scheme.policy_specs(shape, policy).empty()) continue;
    Planes bounded = planes;
    bounded.push_back(plane);
    const Planes without = scheme.quantize_activation(row, policy, planes),
                 with = scheme.quantize_activation(row, policy, bounded);
    if (!std::ranges::equal(without, with, {}, &Plane::bytes, &Plane::bytes))
      found += (found.empty() ? "" : ", ") + std::string(policy.name());
  }
  return found;
}

void print_planes(const Scheme& scheme, const WeightShape& shape, Printout& out) {
  for (const LayoutInfo& info : scheme.layouts()) {
    const Layout layout = scheme.layout_named(info.name);
    if (!some_dtype(scheme, layout)) continue;
    out.text("planes, layout " + std::string(info.name), 2, Ink::bold);
    for (const SymbolicPlane& plane : symbolic_planes(scheme, layout))
      out.text(plane.name + ": " + plane.dtype + " " + plane.shape, 4);
    if (const std::string padding = padding_text(info.name); !padding.empty()) out.text(padding, 4);
  }
  const std::string lower = policies_that_read(scheme, shape, "hp_value_lb", 0x1p9),
                    upper = policies_that_read(scheme, shape, "hp_value_ub", 0x1p-9);
  if (lower.empty() && upper.empty()) return;
  out.text("other planes that a weight may have", 2, Ink::bold);
  if (!lower.empty())
    out.text("hp_value_lb: float64 []: lower bound on the largest magnitude of x, for x " + lower, 4);
  if (!upper.empty())
    out.text("hp_value_ub: float64 []: upper bound on the largest magnitude of x, for x " + upper, 4);
}

void print_written(const Scheme& scheme, const WeightShape& shape, Printout& out) {
  out.text("the recipe writes, for finite weights", 2, Ink::bold);
  for (const WrittenCase& one : scheme.written(shape)) {
    std::string text = one.when.empty() ? "" : "if " + std::string(one.when) + ": ";
    std::string_view plane;
    for (const WrittenRange& range : one.ranges) {
      text += range.plane == plane ? ", " : (plane.empty() ? "" : "; ") + std::string(range.plane) + " ";
      text += described(range.values);
      plane = range.plane;
    }
    out.text(text, 4);
  }
}

// The policies of x, and what the scheme answers where implementations differ.
void print_numerics(const Scheme& scheme, Printout& out) {
  out.text("numerics", 2, Ink::bold);
  for (const ActivationInfo& policy : scheme.activations())
    out.text("linear with x " + std::string(policy.name) +
                 (policy.source.empty() ? "" : ": " + std::string(policy.source)),
             4);
  for (const ChoiceOption* option : choices_of(scheme.name(), scheme.family()))
    out.text(std::string(option->id) + ": " + std::string(option->answer), 4);
}

// One line for each reason why an input is not one that the recipe writes, with the families that draw it.
void print_beyond(const Scheme& scheme, Printout& out) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> families;  // by kind and reason
  for (const Op op : {Op::dequantize, Op::linear})
    for (const Synthetic& input : synthetic_inputs(Kind::numerics, op, scheme, kPlain, InputSet::few)) {
      const KindOfInput kind = kind_of_input(scheme, op, input);
      if (kind.kind != InputKind::reachable)
        families[{std::string(input_kind_name(kind.kind)), kind.outside}].emplace(
            generator_name(input.generator));
    }
  out.text("also asked, if choices has representable_inputs or hostile_inputs", 2, Ink::bold);
  if (families.empty()) out.text("nothing", 4);
  for (const auto& [why, names] : families) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    out.text(why.first + ", " + text + ": " + why.second, 4);
  }
}

// A recipe may refuse a dtype that kernels could handle: then no kernel is asked in it.
std::string dtypes_text(const Scheme& scheme) {
  std::string text;
  for (const DType dtype : {DType::bfloat16, DType::float32, DType::float16}) {
    WeightShape shape = kProbes[0];
    shape.dtype = dtype;
    if (!scheme.refusal(shape)) text += (text.empty() ? "" : ", ") + std::string(dtype_name(dtype));
  }
  return text;
}

}  // namespace

std::vector<SymbolicPlane> symbolic_planes(const Scheme& scheme, Layout layout) {
  const std::optional<DType> dtype = some_dtype(scheme, layout);
  if (!dtype) return {};
  std::vector<std::vector<PlaneSpec>> probes;
  for (WeightShape shape : kProbes) {
    shape.dtype = *dtype;
    probes.push_back(scheme.plane_specs(shape, layout));
  }
  std::vector<SymbolicPlane> planes;
  for (size_t i = 0; i < probes[0].size(); ++i)
    planes.push_back({probes[0][i].name,
                      follows_weight(scheme, layout, i) ? "the weight's dtype"
                                                        : std::string(dtype_name(probes[0][i].dtype)),
                      symbolic_shape(probes, i)});
  return planes;
}

void print_definition(const Scheme& scheme, Printout& out) {
  WeightShape shape = kProbes[0];
  shape.dtype = some_dtype(scheme, kPlain).value_or(DType::bfloat16);
  out.text(std::string(scheme.name()) + ": " + std::string(scheme.summary()), 0, Ink::bold);
  out.text("from " + std::string(scheme.source()), 2);
  out.text(
      "group " +
          (scheme.group() == 0 ? "the whole row" : std::to_string(scheme.group()) + " elements along k") +
          (scheme.params().group_rows == 1 ? ""
           : scheme.params().group_rows == 0
               ? ", of all rows"
               : ", of " + std::to_string(scheme.params().group_rows) + " rows"),
      2);
  out.text("weights in " + dtypes_text(scheme), 2);
  print_planes(scheme, shape, out);
  out.text("one element", 2, Ink::bold);
  out.text(formula(scheme, shape) +
               "; quantize, pack, unpack and dequantize have one right answer, bit for bit; linear must give "
               "the exact sum, within what its declared numerics may add",
           4);
  out.text("codes: " + codes_text(scheme), 4);
  out.text(order_text(scheme, shape), 4);
  print_numerics(scheme, out);
  print_written(scheme, shape, out);
  print_beyond(scheme, out);
}

}  // namespace qcts::cli
