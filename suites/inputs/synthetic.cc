// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/synthetic.h"

#include <algorithm>
#include <array>

#include "reference/numerics/noise.h"

namespace qcts {
namespace {

constexpr std::array<std::string_view, kGeneratorCount> kGeneratorNames = {
    "noise",         "halfway",        "zero_rows",     "extremes",   "all_codes",
    "exact_sums",    "one_hot",        "cancelling",    "non_finite", "zero_points",
    "tiny_scales",   "overflow",       "scaled_x",      "permuted_k", "zero_x",
    "split_k",       "last_k",         "hard_x",        "tiles",      "large",
    "not_sparse",    "given_scales",   "panels",        "long",       "rows",
    "columns",       "wide_bias",      "wide_y",        "wide_x",     "big_x",
    "half_overflow", "half_subnormal", "block_scales",  "outliers",   "one_sign",
    "swamped",       "deep",           "batches",       "tall",       "zero_codes",
    "models",        "drawn",          "tied_sums",     "odd_scales", "wide_sums",
    "tiny_sums",     "huge_weights",   "end_pairs",     "nan_scales", "deeper",
    "blocks",        "larger",         "two_roundings", "many_rows",  "layer",
    "far",           "squares",        "subnormal_x",   "ranges",     "group_squares",
};
static_assert(!kGeneratorNames.back().empty());

}  // namespace

std::string_view generator_name(Generator generator) {
  return kGeneratorNames[static_cast<size_t>(generator)];
}

std::optional<Generator> find_generator(std::string_view name) {
  const auto found = std::ranges::find(kGeneratorNames, name);
  if (found == kGeneratorNames.end()) return std::nullopt;
  return static_cast<Generator>(found - kGeneratorNames.begin());
}

bool is_wide(Generator generator) {
  return generator == Generator::wide_bias || generator == Generator::wide_y ||
         generator == Generator::wide_x;
}

bool is_half(Generator generator) {
  return generator == Generator::half_overflow || generator == Generator::half_subnormal;
}

bool Synthetic::has_full_nan() const {
  return draw && draw->index >= kFirstMixedDraw && draw->index % 2 == 1 && activation == kWeightOnly && m > 1;
}

LinearTypes Synthetic::linear_types() const {
  const DType own = weight.dtype;
  LinearTypes types{own, own, own};
  if (generator == Generator::wide_bias) types.bias = DType::float32;
  // one_sign needs a wide y too: with fewer bits a step of one code among so many would not be visible.
  if (generator == Generator::wide_x || generator == Generator::wide_y || generator == Generator::one_sign)
    types.y = DType::float32;
  if (generator == Generator::wide_x) types.x = DType::float32;
  if (!draw || draw->index < kFirstMixedDraw) return types;
  uint64_t next = 0;
  const auto below = [&](uint64_t count) { return splitmix64(seed, next++) % count; };
  const auto narrow = [&] { return below(2) == 0 ? DType::bfloat16 : DType::float16; };
  // Kernels mix float32 with one narrow type, not the narrow types with each other.
  const auto another = [&](DType than) { return than == DType::float32 ? narrow() : DType::float32; };
  if (activation == kWeightOnly)
    types.x = draw->index == kFirstMixedDraw    ? DType::float16
              : has_full_nan() || below(2) == 0 ? DType::float32
                                                : narrow();
  types.y = has_full_nan() || below(2) == 0 ? another(types.x) : types.x;
  types.bias = below(2) == 0 ? another(types.x) : types.x;
  if (draw->index == kFirstMixedDraw + 1 && has_full_nan()) types.y = DType::bfloat16;
  // Two narrow types: bits of one read as the other.
  if (draw->index == kNarrowDraw) {
    types.y = narrow();
    types.bias = types.y == DType::bfloat16 ? DType::float16 : DType::bfloat16;
  }
  return types;
}

}  // namespace qcts
