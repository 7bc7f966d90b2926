// SPDX-License-Identifier: BSD-3-Clause
// The recipes of torchao's first generation by the names that quant_api.py gives them.
#pragma once

#include <string>
#include <string_view>

namespace qcts::cli {

// A recipe of torchao 0.9.0 or 0.13.0 with its default arguments.
struct FirstRecipe {
  std::string_view scheme, activation;
  std::string_view dialect;  // the word of --as, if none is given
};

// Returns the recipe for a word of --scheme under --as `dialect`; nullptr for a word that names none.
// Throws UsageError for a recipe that qcts cannot write. The message names its class.
const FirstRecipe* find_first_recipe(std::string_view word, std::string_view dialect);

}  // namespace qcts::cli
