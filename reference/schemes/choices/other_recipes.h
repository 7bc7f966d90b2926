// SPDX-License-Identifier: BSD-3-Clause
// Recipes and meanings that an implementation may follow in place of a scheme's own: options of the ledger
// (choices.h) that can be computed, and recipes of older versions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reference/schemes/scheme.h"

namespace qcts {

struct OtherRecipe {
  std::string_view choice;  // id of the option in the ledger; empty: only `words` names the recipe
  std::string_view words;   // "scales of at least 2^-23"
  // Quantizes a finite weight to planes in layout "plain". Throws std::invalid_argument if it cannot.
  std::function<Planes(const Matrix&)> quantize;
  bool quantizes_x = false;  // rows of x are quantized in the same way
};
std::vector<OtherRecipe> other_recipes(const Scheme& scheme);

// Options of the ledger that a profile plays in place of a scheme's own.
struct PlayedRecipe {
  std::function<Planes(const Matrix&)> quantize;  // weights, and rows of x; empty: the scheme's own
  bool any_non_finite = false;  // a block with NaN or an infinity may get any codes and any scale
};
// Returns nullopt if the scheme has none of the options. Throws std::invalid_argument, which names the
// option, if no scheme has it.
std::optional<PlayedRecipe> played_recipe(const Scheme& scheme, const std::vector<std::string>& options);
// Returns the planes that `scheme` makes from a weight, by the recipe if there is one.
Planes quantized_by(const PlayedRecipe* recipe, const Scheme& scheme, const Matrix& weight, Layout layout);
// Copies into `got` the blocks of `want` that any answer to `weight` fits. Planes of another size stay.
void forgive_blocks(const PlayedRecipe& recipe, const Scheme& scheme, const Matrix& weight,
                    const Planes& want, Planes& got);

struct OtherMeaning {
  std::string_view choice;
  // Dequantizes layout "plain" to row-major [n, k] in the logical dtype.
  std::function<std::vector<std::byte>(const Planes&, const WeightShape&)> dequantize;
};
std::vector<OtherMeaning> other_meanings(const Scheme& scheme);

// Returns the option of the ledger that a policy of x follows, or "".
std::string_view choice_of_policy(Policy policy);

}  // namespace qcts
