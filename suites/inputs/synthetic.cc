// SPDX-License-Identifier: BSD-3-Clause
#include "suites/inputs/synthetic.h"

#include <algorithm>
#include <array>

namespace qcts {
namespace {

constexpr std::array<std::string_view, kGeneratorCount> kGeneratorNames = {
    "noise",         "halfway",        "zero_rows",    "extremes",     "all_codes",    "exact_sums",
    "one_hot",       "cancelling",     "non_finite",   "zero_points",  "tiny_scales",  "overflow",
    "scaled_x",      "permuted_k",     "zero_x",       "split_k",      "last_k",       "hard_x",
    "tiles",         "large",          "not_sparse",   "given_scales", "panels",       "long",
    "rows",          "columns",        "wide_bias",    "wide_y",       "wide_x",       "big_x",
    "half_overflow", "half_subnormal", "block_scales", "outliers",     "one_sign",     "swamped",
    "deep",          "batches",        "tall",         "zero_codes",   "models",       "drawn",
    "tied_sums",     "odd_scales",     "wide_sums",    "tiny_sums",    "huge_weights", "end_pairs",
    "nan_scales",
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

}  // namespace qcts
