// SPDX-License-Identifier: BSD-3-Clause
// The options that a kernel may have followed in place of the one that it was asked for: sibling schemes,
// other policies of x, and options of the ledger (reference/schemes/choices/choices.h) that can be computed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "suites/providers/kernel_run.h"

namespace qcts {

struct RecipeOption {
  std::string name;    // "mxfp4_even", "int8_row by half_away", "dyn_row_sym_127"
  std::string choice;  // id of the option in the ledger; empty for a sibling without one
  // Computes what an implementation of the option gives. Throws if the option cannot take this input.
  std::function<KernelAnswer(const KernelInput&)> play;
  bool is_order = false;  // only the order of the codes differs
};

// Returns the options of quantize, quantize_activation and dequantize with these parameters; what was asked
// comes first. Depends on op, scheme, weight, m, dtypes and activation of the input. Empty for other ops.
std::vector<RecipeOption> recipe_options(const KernelInput& like);

}  // namespace qcts
