// SPDX-License-Identifier: BSD-3-Clause
#include "suites/judge/diagnosis/plane_hypotheses.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <tuple>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/other_recipes.h"
#include "suites/judge/diagnosis/recipe_options.h"

namespace qcts {
namespace {

constexpr int64_t kMostQuantized = int64_t{1} << 20;

size_t plane_step(const Plane& plane) { return std::max<size_t>(1, dtype_bits(plane.dtype) / 8); }

bool have_same_specs(const Planes& a, const Planes& b) {
  return std::ranges::equal(a, b, [](const Plane& one, const Plane& other) {
    return one.name == other.name && one.dtype == other.dtype && one.shape == other.shape &&
           one.bytes.size() == other.bytes.size();
  });
}

bool have_same_elements(const Planes& a, const Planes& b) {
  return have_same_specs(a, b) && std::ranges::equal(a, b, [](const Plane& one, const Plane& other) {
           return !first_difference(one, other);
         });
}

// The elements in which two sets of planes differ.
struct Difference {
  uint64_t elements = 0;
  std::set<std::tuple<size_t, uint64_t, uint64_t>> distinct;  // plane, wanted bits, got bits
  std::string names;                                          // "qdata and scale"
};

uint64_t bits_at(const Plane& plane, size_t byte) {
  uint64_t bits = 0;
  std::memcpy(&bits, plane.bytes.data() + byte, std::min(sizeof bits, plane_step(plane)));
  return bits;
}

Difference difference_of(const Planes& want, const Planes& got) {
  Difference all;
  std::vector<std::string> names;
  for (size_t p = 0; p < want.size(); ++p) {
    const uint64_t before = all.elements;
    for (size_t at = 0; at + plane_step(want[p]) <= want[p].bytes.size(); at += plane_step(want[p])) {
      const uint64_t wanted = bits_at(want[p], at), is = bits_at(got[p], at);
      if (wanted == is) continue;
      ++all.elements;
      all.distinct.emplace(p, wanted, is);
    }
    if (all.elements > before) names.push_back(want[p].name);
  }
  for (size_t i = 0; i < names.size(); ++i)
    all.names += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
  return all;
}

// Collects the names of the recipes that give exactly the planes of an answer.
class Recipes {
 public:
  Recipes(const KernelInput& input, const Planes& got, std::string planes)
      : input_(input), got_(got), planes_(std::move(planes)) {
    add_inputs();
    if (input.op == Op::quantize)
      add_schemes();
    else
      add_policies();
    add_options();
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void add(const std::string& name, const std::function<Planes()>& make) {
    if (names_.size() == 2) return;
    try {
      if (have_same_elements(make(), got_)) names_.push_back(name);
    } catch (const std::exception&) {  // the scheme refuses this input, so this mistake is impossible
    }
  }

  std::string those_of(std::string_view recipe) const {
    return planes_ +
           (planes_.find(" and ") == planes_.npos && planes_.find(", ") == planes_.npos ? " matches "
                                                                                        : " match ") +
           std::string(recipe);
  }

  Planes quantized(const Scheme& scheme, Layout layout, std::span<const std::byte> x) const {
    if (input_.op == Op::quantize_activation)
      return scheme.quantize_activation({input_.x_dtype, input_.m, input_.weight.k, x}, input_.activation,
                                        input_.planes);
    return quantized_by(&scheme == input_.scheme ? input_.recipe : nullptr, scheme,
                        {input_.weight.dtype, input_.weight.n, input_.weight.k, x}, layout);
  }

  void add_schemes() {
    for (const Layout layout : input_.scheme->layouts())
      if (layout != input_.layout)
        add(those_of("the recipe for layout " + std::string(layout.name())),
            [&] { return quantized(*input_.scheme, layout, input_.x); });
    for (const bool of_family : {true, false})
      for (const Scheme* const other : schemes()) {
        const bool same_family = other->family() == input_.scheme->family();
        if (other == input_.scheme || same_family != of_family || other->refusal(input_.weight)) continue;
        if (!have_specs(got_, other->plane_specs(input_.weight))) continue;
        add(those_of(other->name()), [&] { return quantized(*other, kPlain, input_.x); });
      }
  }

  void add_policies() {
    for (const Scheme* const other : schemes())
      for (const Policy policy : other->activations()) {
        const bool is_own = other->family() == input_.scheme->family();
        if (policy == kWeightOnly || (is_own && policy == input_.activation)) continue;
        add(those_of(is_own ? std::string(policy.name())
                            : std::string(policy.name()) + " of " + std::string(other->name())),
            [&] { return other->quantize_activation(input_.x_matrix(), policy, input_.planes); });
      }
  }

  // Options of the ledger that no other scheme stands for.
  void add_options() {
    if (!names_.empty()) return;
    if (input_.recipe != nullptr)
      add(those_of(std::string(input_.scheme->name()) + " without the options of the promised profile"), [&] {
        return input_.op == Op::quantize
                   ? input_.scheme->quantize(
                         {input_.weight.dtype, input_.weight.n, input_.weight.k, input_.x}, input_.layout)
                   : input_.scheme->quantize_activation(input_.x_matrix(), input_.activation, input_.planes);
      });
    for (const RecipeOption& option : recipe_options(input_))
      if (!option.choice.empty() && option.name.ends_with(option.choice))
        add(those_of(option.name), [&] { return option.play(input_).planes; });
  }

  // The right recipe on a changed input. `change` gets all elements and their number in a row.
  void add_input(const std::string& name, const std::function<void(std::span<double>, size_t)>& change) {
    add(name, [&] {
      const DType dtype = input_.op == Op::quantize ? input_.weight.dtype : input_.x_dtype;
      std::vector<double> values = load_doubles(dtype, input_.x);
      change(values, static_cast<size_t>(input_.weight.k));
      std::vector<std::byte> x(input_.x.size());
      for (size_t i = 0; i < values.size(); ++i) store_float(dtype, x, i, values[i]);
      return quantized(*input_.scheme, input_.layout, x);
    });
  }

  void add_inputs() {
    const DType own = input_.op == Op::quantize ? input_.weight.dtype : input_.x_dtype;
    const FloatFormat& format = float_format(own);
    const auto each = [](auto of) {
      return [of](std::span<double> values, size_t) {
        for (double& value : values) value = of(value);
      };
    };
    add_input("NaN read as 0", each([](double v) { return std::isnan(v) ? 0 : v; }));
    add_input("infinity read as the largest number",
              each([&](double v) { return std::isinf(v) ? std::copysign(format.max, v) : v; }));
    add_input("infinity read as 0", each([](double v) { return std::isinf(v) ? 0 : v; }));
    add_input("subnormal inputs read as zero",
              each([&](double v) { return std::fabs(v) < format.min_normal ? std::copysign(0.0, v) : v; }));
    for (const DType narrow : {DType::bfloat16, DType::float16})
      if (own != narrow)
        add_input("the input rounded to " + std::string(dtype_name(narrow)) + " first",
                  each([narrow](double v) { return round_to(narrow, v); }));
    const auto rotated = [](bool forward) {
      return [forward](std::span<double> values, size_t width) {
        const auto middle = static_cast<ptrdiff_t>(forward ? width : values.size() - width);
        std::rotate(values.begin(), values.begin() + middle, values.end());
      };
    };
    add_input("the previous row", rotated(false));
    add_input("the next row", rotated(true));
    add_partial_maxima();
  }

  // How many elements have a scale together: all, those of a row or those of a group.
  size_t elements_a_scale(size_t count, size_t width) const {
    const auto scales = [](const Planes& planes) {
      const auto found = std::ranges::find_if(
          planes, [](const Plane& plane) { return plane.name.find("scale") != plane.name.npos; });
      return found == planes.end() ? size_t{0} : found->bytes.size() / plane_step(*found);
    }(got_);
    return scales == 1 ? count : scales == 0 || count % scales != 0 ? width : std::min(width, count / scales);
  }

  // A recipe that finds the largest element among a part of them saturates the rest, as if they were in its
  // range. `is_left_out` gets the index of an element, the number of elements and that in a row.
  void add_partial_maximum(const std::string& what,
                           const std::function<bool(size_t, size_t, size_t)>& is_left_out) {
    add_input("the range is sought without " + what, [&](std::span<double> values, size_t width) {
      const size_t step = elements_a_scale(values.size(), width);
      for (size_t begin = 0; begin < values.size(); begin += step) {
        double low = 0, high = 0, magnitude = 0;
        const size_t end = std::min(begin + step, values.size());
        for (size_t i = begin; i < end; ++i) {
          if (std::isnan(values[i]) || is_left_out(i, values.size(), width)) continue;
          low = std::min(low, values[i]);
          high = std::max(high, values[i]);
          magnitude = std::max(magnitude, std::fabs(values[i]));
        }
        const bool is_symmetric = !has_range();
        for (size_t i = begin; i < end; ++i)
          if (is_left_out(i, values.size(), width))
            values[i] = is_symmetric ? std::clamp(values[i], -magnitude, magnitude)
                                     : std::clamp(values[i], low, high);
      }
    });
  }

  bool has_range() const {
    return std::ranges::any_of(got_, [](const Plane& plane) {
      return plane.name.find("zero") != plane.name.npos &&
             std::ranges::any_of(plane.bytes, [](std::byte byte) { return byte != std::byte{0}; });
    });
  }

  void add_partial_maxima() {
    constexpr int64_t kMostElements = int64_t{1} << 17;  // many hypotheses for a failure of many cases
    if (!names_.empty() || input_.x_rows() * input_.weight.k > kMostElements) return;
    for (const size_t lanes : {size_t{4}, size_t{8}, size_t{16}, size_t{32}, size_t{64}}) {
      const std::string vector = " after the last whole " + std::to_string(lanes);
      add_partial_maximum("the elements" + vector,
                          [=](size_t i, size_t count, size_t) { return i >= count / lanes * lanes; });
      add_partial_maximum("the elements of a row" + vector,
                          [=](size_t i, size_t, size_t width) { return i % width >= width / lanes * lanes; });
      add_partial_maximum("the rows" + vector, [=](size_t i, size_t count, size_t width) {
        return count / width > lanes && i / width >= count / width / lanes * lanes;
      });
    }
    add_partial_maximum("every second element", [](size_t i, size_t, size_t) { return i % 2 != 0; });
    add_partial_maximum("the last element of a row",
                        [](size_t i, size_t, size_t width) { return i % width == width - 1; });
    add_partial_maximum("the last row", [](size_t i, size_t count, size_t width) {
      return count > width && i / width == count / width - 1;
    });
  }

  const KernelInput& input_;
  const Planes& got_;
  const std::string planes_;
  std::vector<std::string> names_;
};

}  // namespace

bool have_specs(const Planes& planes, const std::vector<PlaneSpec>& specs) {
  return std::ranges::equal(planes, specs, [](const Plane& plane, const PlaneSpec& spec) {
    return plane.name == spec.name && plane.dtype == spec.dtype && plane.shape == spec.shape;
  });
}

std::optional<AnswerExplanation> explain_planes(const KernelInput& input, const Planes& want,
                                                const Planes& got, const Distinct& distinct) {
  if (input.op != Op::quantize && input.op != Op::quantize_activation) return std::nullopt;
  const int64_t rows = input.op == Op::quantize ? input.weight.n : input.m;
  if (!have_same_specs(want, got)) return std::nullopt;
  if (auto rounding = explain_code_rounding(input, want, got, distinct)) return rounding;
  if (rows * input.weight.k > kMostQuantized) return std::nullopt;
  const Difference differing = difference_of(want, got);
  if (!distinct.allows(differing.distinct.size())) return std::nullopt;
  const Recipes recipes(input, got, differing.names);
  const std::vector<std::string>& names = recipes.names();
  if (names.empty()) return std::nullopt;
  return AnswerExplanation{names[0], names.size() > 1 ? names[1] : "", differing.elements, ""};
}

}  // namespace qcts
