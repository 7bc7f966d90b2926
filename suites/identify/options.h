// SPDX-License-Identifier: BSD-3-Clause
// The alternatives that a kernel may have computed in place of what it was asked for.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "suites/judge/diagnosis/recipe_options.h"
#include "suites/judge/expected/test_vector.h"

namespace qcts {

// `play` of a linear gives the exact sums, rounded to y's type.
struct IdentifyOption : RecipeOption {
  // linear: the range of each element of y, row-major [m, n], for a kernel that rounds where `stages` say;
  // empty for other ops. Throws if the option cannot take this input.
  std::function<std::vector<Bounded>(const KernelInput&, const LinearStages&)> bounds = {};
};

// Returns the options of an input with these parameters; what was asked comes first. Depends on op, scheme,
// layout, weight, m, dtypes and activation.
//
// - quantize, quantize_activation, dequantize: recipe_options().
// - linear: other policies of x, schemes of the family with the same planes and another meaning, and the
//   other order of two codes in a byte. Options that only round elsewhere are within one bound and are left
//   out.
// - pack, unpack: other layouts of the scheme whose planes have the same names and sizes, and for pack the
//   planes as they are ("plain"); the other order of two codes in a byte, before the codes are packed or
//   after they are unpacked.
std::vector<IdentifyOption> identify_options(const KernelInput& like);

}  // namespace qcts
