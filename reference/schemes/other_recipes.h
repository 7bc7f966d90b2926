// SPDX-License-Identifier: BSD-3-Clause
// Recipes and meanings that an implementation may follow in place of a scheme's own: options of the ledger
// (choices.h) that can be computed, and recipes of older versions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

struct OtherRecipe {
  std::string_view choice;  // id of the option in the ledger; empty: `words` tells the recipe from today's
  std::string_view words;   // "scales of at least 2^-23"
  // Quantizes a finite weight to planes in layout "plain". Throws std::invalid_argument if it cannot.
  std::function<Planes(const Matrix&)> quantize;
};
std::vector<OtherRecipe> other_recipes(const Scheme& scheme);

struct OtherMeaning {
  std::string_view choice;
  // Dequantizes layout "plain" to row-major [n, k] in the logical dtype.
  std::function<std::vector<std::byte>(const Planes&, const WeightShape&)> dequantize;
};
std::vector<OtherMeaning> other_meanings(const Scheme& scheme);

// Returns the option of the ledger that a policy of x follows, or "".
std::string_view choice_of_policy(Policy policy);

}  // namespace qcts
