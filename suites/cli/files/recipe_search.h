// SPDX-License-Identifier: BSD-3-Clause
// Finds the recipes that make the planes of a quantized weight from its dense weight.
// Candidates are all recipes of all schemes whose planes have the same names, dtypes and shapes, and whose
// codes have the same type. Their planes are compared bitwise in layout "plain"; all NaNs of a float plane
// are equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/formats/tensor.h"
#include "reference/schemes/choices/first_recipes.h"
#include "reference/schemes/scheme.h"

namespace qcts::cli {

struct Recipe {
  const Scheme* scheme = nullptr;
  WeightRecipe how = WeightRecipe::current;
  Layout layout;                  // whose producer's recipe it is (Scheme::quantize)
  DType dtype = DType::bfloat16;  // of the dense weight when it is quantized
};

// Returns what distinguishes the recipe from the others of its scheme, such as "scales of at least 2^-23", or
// "".
std::string recipe_words(const Recipe& recipe);
// Returns the libraries and versions that are known to quantize by one of these recipes:
// "torchao 0.5.0, 0.6.1, 0.7.0 to 0.17.0".
std::string recipe_versions(const std::vector<Recipe>& recipes);

// The planes that a recipe makes, compared with those of the file.
struct RecipeMatch {
  Recipe recipe;
  bool fits = false;  // true if nothing differs
  int64_t rows = 0;   // rows that were compared: all, or the first ones of a recipe that does not fit
  uint64_t codes = 0, equal_codes = 0;
  uint64_t scales = 0, equal_scales = 0;  // elements of the planes other than the codes
  // The first difference, of codes if a code differs. Empty if the recipe fits.
  std::string plane, place;            // "qdata", "row 3, column 17"
  std::optional<int64_t> row, column;  // of a code

  double code_share() const { return codes == 0 ? 0 : static_cast<double>(equal_codes) / codes; }
  double scale_share() const { return scales == 0 ? 0 : static_cast<double>(equal_scales) / scales; }
};

struct RecipeSearch {
  std::vector<RecipeMatch> fits;       // those of the file's own scheme first
  std::optional<RecipeMatch> nearest;  // of those that do not fit, the one with the most equal codes
};

// `held` is the quantized weight and `dense` its original, with as many elements.
// The original is quantized in the weight's logical dtype, and in its own dtype if that differs.
RecipeSearch find_recipes(const SchemeTensor& held, const Tensor& dense);

}  // namespace qcts::cli
