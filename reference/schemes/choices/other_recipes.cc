// SPDX-License-Identifier: BSD-3-Clause
#include "reference/schemes/choices/other_recipes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <stdexcept>

#include "reference/numerics/soft_float.h"
#include "reference/schemes/choices/first_recipes.h"
#include "reference/schemes/mx_options.h"

namespace qcts {
namespace {

bool has_two_codes_a_byte(const Scheme& scheme, const WeightShape& shape) {
  const std::vector<PlaneSpec> specs = scheme.plane_specs(shape);
  return !specs.empty() && specs[0].name == "qdata" &&
         specs[0].bytes() * 2 == static_cast<uint64_t>(shape.n * shape.k);
}

// Puts the code with this index of codes().values where weight [row, k] is decoded.
void set_code(const Scheme& scheme, const WeightShape& shape, Planes& planes, int64_t row, int64_t k,
              unsigned code) {
  const auto at = static_cast<size_t>(scheme.element_of(shape, planes[0].name, row, k));
  std::vector<std::byte>& bytes = planes[0].bytes;
  if (!has_two_codes_a_byte(scheme, shape)) {
    bytes.at(at) = static_cast<std::byte>(code);
    return;
  }
  const unsigned shift = at % 2 * 4;
  bytes.at(at / 2) =
      (bytes[at / 2] & static_cast<std::byte>(0xF0 >> shift)) | static_cast<std::byte>((code & 15) << shift);
}

// The code on the other side of `value`, if it is halfway and that code is farther from 0.
std::optional<double> away_from_zero(const std::vector<double>& codes, double code, double value) {
  const auto found = std::ranges::lower_bound(codes, code);
  if (found == codes.end() || *found != code || value == code) return std::nullopt;
  if (std::fabs(value) < std::fabs(code)) return std::nullopt;
  const bool up = value > code;
  if (up ? found + 1 == codes.end() : found == codes.begin()) return std::nullopt;
  const double other = up ? *(found + 1) : *(found - 1);
  return value == (code + other) / 2 ? std::optional(other) : std::nullopt;
}

// How a recipe forms a value in units of its scale, in float32.
enum class Division : uint8_t { quotient, reciprocal };

float in_units(Division division, double x, double scale) {
  const auto value = static_cast<float>(x), step = static_cast<float>(scale);
  return division == Division::quotient ? value / step : value * (1 / step);
}

// The scheme's own planes, with halves rounded away from zero.
Planes with_halves_away(const Scheme& scheme, Division division, const Matrix& weight) {
  const WeightShape shape = {weight.dtype, weight.rows, weight.cols};
  Planes planes = scheme.quantize(weight);
  const std::vector<double> values = scheme.codes().values, x = load_doubles(weight.dtype, weight.bytes);
  std::vector<double> codes = values;
  std::erase_if(codes, [](double code) { return !std::isfinite(code); });
  std::ranges::sort(codes);
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  std::vector<ExactWeight> row(static_cast<size_t>(weight.cols));
  const Planes before = planes;
  for (int64_t n = 0; n < weight.rows; ++n) {
    scheme.exact_row(before, shape, n, row);
    for (int64_t k = 0; k < weight.cols; ++k) {
      const ExactWeight& exact = row[static_cast<size_t>(k)];
      const double value = in_units(division, x[static_cast<size_t>(n * weight.cols + k)], exact.scale);
      const std::optional<double> other = away_from_zero(codes, exact.code, value);
      if (!other) continue;
      const auto found = std::ranges::find_if(
          values, [&](double code) { return code == *other && std::signbit(code) == std::signbit(value); });
      if (found != values.end())
        set_code(scheme, shape, planes, n, k, static_cast<unsigned>(found - values.begin()));
    }
  }
  return planes;
}

// int8 weights without a zero point: the codes of other scales or of a division.
struct Int8Option {
  double divisor = 0;  // of max |w|; 0: the scheme's own scales
  Division division = Division::reciprocal;
};

Planes int8_planes(const Scheme& scheme, const Int8Option& option, const Matrix& weight) {
  Planes planes = scheme.quantize(weight);
  Plane& scales = planes.at(1);
  if (scales.name != "scale" || scales.dtype != DType::float32)
    throw std::invalid_argument("the scales are not float32");
  const std::vector<double> x = load_doubles(weight.dtype, weight.bytes);
  const size_t groups = scales.bytes.size() / 4, each = x.size() / groups;
  const SchemeParams& params = scheme.params();
  for (size_t group = 0; group < groups; ++group) {
    const std::span<const double> values = std::span(x).subspan(group * each, each);
    double largest = 0;
    for (const double value : values)
      largest = std::isnan(value) || std::isnan(largest) ? NAN : std::max(largest, std::fabs(value));
    float scale = static_cast<float>(load_float(DType::float32, scales.bytes, group));
    if (option.divisor != 0) {
      scale = std::max(div_in(weight.dtype, static_cast<float>(largest), static_cast<float>(option.divisor)),
                       std::isnan(largest) ? 0 : 0x1p-23f);
      if (std::isnan(largest)) scale = NAN;
      store_float(DType::float32, scales.bytes, group, scale);
    }
    for (size_t i = 0; i < each; ++i) {
      const float value = in_units(option.division, values[i], scale);
      const float code = std::isnan(value)
                             ? 0
                             : std::clamp(std::nearbyint(value), static_cast<float>(params.code_min),
                                          static_cast<float>(params.code_max));
      planes[0].bytes[group * each + i] = static_cast<std::byte>(static_cast<int8_t>(code));
    }
  }
  return planes;
}

// Int4 weights with a floating zero, not rounded by one fused multiply-add.
enum class Int4Sum : uint8_t { two_roundings, folded_zero };

std::vector<std::byte> int4_values(const Scheme& scheme, Int4Sum sum, const Planes& planes,
                                   const WeightShape& shape) {
  std::vector<std::byte> y(static_cast<size_t>(shape.n * shape.k) * dtype_bytes(shape.dtype));
  std::vector<ExactWeight> row(static_cast<size_t>(shape.k));
  for (int64_t n = 0; n < shape.n; ++n) {
    scheme.exact_row(planes, shape, n, row);
    for (size_t k = 0; k < row.size(); ++k) {
      const ExactWeight& weight = row[k];
      double value = 0;
      if (sum == Int4Sum::two_roundings) {
        value = round_to(shape.dtype, weight.product) + weight.zero;
      } else {
        const float bracket = static_cast<float>(weight.zero - 8 * weight.scale);
        value = static_cast<float>((weight.code + 8) * weight.scale + static_cast<double>(bracket));
      }
      store_float(shape.dtype, y, static_cast<size_t>(n) * row.size() + k, value);
    }
  }
  return y;
}

class Recipes {
 public:
  explicit Recipes(const Scheme& scheme) : scheme_(scheme) {}

  std::vector<OtherRecipe> all() && {
    add_first_recipes();
    add_mx();
    add_rounding();
    return std::move(recipes_);
  }

 private:
  void add(std::string_view choice, std::function<Planes(const Matrix&)> quantize) {
    recipes_.push_back({choice, "", std::move(quantize)});
  }

  // Recipes of other layouts and versions of torchao.
  void add_first_recipes() {
    const auto add_recipe = [&](WeightRecipe recipe, std::string_view words) {
      recipes_.push_back({"", words, [recipe, scheme = &scheme_](const Matrix& weight) {
                            return quantize_by(recipe, *scheme, weight);
                          }});
    };
    if (scheme_.family() == "intx") {
      add_recipe(WeightRecipe::least_scale_2_23, "scales of at least 2^-23");
      add_recipe(WeightRecipe::least_scale_eps, "scales of at least the weight's eps");
    }
    if (scheme_.family() == "fp8" || scheme_.family() == "fp8_row") {
      add_recipe(WeightRecipe::reciprocal, "times the reciprocal of the scale");
      add_recipe(WeightRecipe::narrow_reciprocal, "times the reciprocal in the weight's type");
    }
    const std::optional<Layout> tiles = scheme_.find_layout("tile_packed_4d");
    if (scheme_.family() == "int4_tinygemm" && tiles)
      add("int4_eps_smallest_normal",
          [scheme = &scheme_, tiles](const Matrix& weight) { return scheme->quantize(weight, *tiles); });
  }

  void add_mx() {
    if (scheme_.family() != "mx") return;
    const bool is_rceil = scheme_.params().scale_rounding == ScaleRounding::rceil;
    const MxOption option = is_rceil ? MxOption::rceil_bits : MxOption::exact_least_scale;
    add(is_rceil ? "mx_rceil_bits" : "mx_scale_exact", [option, scheme = &scheme_](const Matrix& weight) {
      return quantize_mx_by(option, *scheme, weight);
    });
    recipes_.back().quantizes_x = true;
  }

  void add_rounding() {
    const std::string_view family = scheme_.family();
    const bool int8 = family == "int8_row" || family == "int8_tensor" || family == "int8_group" ||
                      family == "int8_row_reduced" || family == "int8_tensor_reduced";
    const auto add_away = [&](Division division) {
      add("half_away", [division, scheme = &scheme_](const Matrix& weight) {
        return with_halves_away(*scheme, division, weight);
      });
    };
    if (family == "mx" || family == "fp8" || family == "fp8_row") add_away(Division::quotient);
    if (int8 || scheme_.name() == "nvfp4_one_level") add_away(Division::reciprocal);
    if (!int8) return;
    const auto add_int8 = [&](std::string_view choice, Int8Option option) {
      add(choice,
          [option, scheme = &scheme_](const Matrix& weight) { return int8_planes(*scheme, option, weight); });
    };
    add_int8("tinyq_divide", {0, Division::quotient});
    add_int8("tinyq_127", {127, Division::reciprocal});
  }

  const Scheme& scheme_;
  std::vector<OtherRecipe> recipes_;
};

}  // namespace

std::vector<OtherRecipe> other_recipes(const Scheme& scheme) { return Recipes(scheme).all(); }

namespace {

constexpr std::string_view kAnyNonFinite = "mx_non_finite_any";

bool is_playable(const std::string& option) {
  return option == kAnyNonFinite || std::ranges::any_of(schemes(), [&](const Scheme* scheme) {
           return std::ranges::any_of(other_recipes(*scheme), [&](const OtherRecipe& recipe) {
             return recipe.choice == option && recipe.quantizes_x;
           });
         });
}

}  // namespace

std::optional<PlayedRecipe> played_recipe(const Scheme& scheme, const std::vector<std::string>& options) {
  PlayedRecipe played;
  for (const std::string& option : options) {
    if (!is_playable(option)) throw std::invalid_argument("no option '" + option + "' that can be computed");
    if (option == kAnyNonFinite) played.any_non_finite = scheme.family() == "mx";
  }
  for (OtherRecipe& recipe : other_recipes(scheme))
    if (recipe.quantizes_x && std::ranges::find(options, recipe.choice) != options.end())
      played.quantize = std::move(recipe.quantize);
  if (!played.quantize && !played.any_non_finite) return std::nullopt;
  return played;
}

Planes quantized_by(const PlayedRecipe* recipe, const Scheme& scheme, const Matrix& weight, Layout layout) {
  return recipe != nullptr && recipe->quantize ? recipe->quantize(weight) : scheme.quantize(weight, layout);
}

void forgive_blocks(const PlayedRecipe& recipe, const Scheme& scheme, const Matrix& weight,
                    const Planes& want, Planes& got) {
  if (!recipe.any_non_finite || want.size() != got.size()) return;
  const std::vector<double> values = load_doubles(weight.dtype, weight.bytes);
  const auto group = static_cast<size_t>(scheme.group());
  const size_t blocks = values.size() / group;
  for (size_t block = 0; block < blocks; ++block) {
    const std::span<const double> elements(values.data() + block * group, group);
    if (std::ranges::all_of(elements, [](double value) { return std::isfinite(value); })) continue;
    for (size_t i = 0; i < want.size(); ++i) {
      const size_t each = want[i].bytes.size() / blocks;
      if (got[i].bytes.size() == want[i].bytes.size())
        std::copy_n(want[i].bytes.begin() + static_cast<ptrdiff_t>(block * each), each,
                    got[i].bytes.begin() + static_cast<ptrdiff_t>(block * each));
    }
  }
}

std::vector<OtherMeaning> other_meanings(const Scheme& scheme) {
  if (scheme.family() != "int4_tinygemm" && scheme.family() != "int4_plain") return {};
  const auto meaning = [&scheme](std::string_view choice, Int4Sum sum) {
    return OtherMeaning{choice, [sum, &scheme](const Planes& planes, const WeightShape& shape) {
                          return int4_values(scheme, sum, planes, shape);
                        }};
  };
  return {meaning("int4_dequant_two_roundings", Int4Sum::two_roundings),
          meaning("int4_folded_zero", Int4Sum::folded_zero)};
}

std::string_view choice_of_policy(Policy policy) {
  static const std::map<std::string_view, std::string_view> kChoices = {
      {"dyn_row_sym_127", "int8_activation_codes_127"},
      {"dyn_token_sym_127_s32", "int8_activation_codes_127_f32"},
      {"dyn_token_sym_s32", "int8_activation_cutlass"},
      {"dyn_token_sym_127", "int8_activation_cutlass_x"},
      {"dyn_token_asym_s32", "asymmetric_token_scale_f32"},
      {"dyn_token_asym_eps", "asymmetric_token_scale_x"},
      {"dyn_token_asym_u8_s32", "asymmetric_token_codes_uint8"},
      {"dyn_row_recip", "float8_activation_reciprocal"},
      {"dyn_tensor_recip", "float8_activation_reciprocal"},
      {"dyn_row_fbgemm", "float8_activation_fbgemm"},
      {"dyn_row_mslk", "float8_activation_mslk"}};
  const auto found = kChoices.find(policy.name());
  return found == kChoices.end() ? "" : found->second;
}

}  // namespace qcts
