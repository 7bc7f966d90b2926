// SPDX-License-Identifier: BSD-3-Clause
// Implements `check FILE --model SKELETON`: reports which keys of a model the file fills.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/comparison/keys.h"
#include "suites/base/terminal.h"

namespace qcts::cli {

// Returns {"verdict", "missing", "unexpected", "mismatched", "weights"}.
// "weights" has the types before and after.
nlohmann::ordered_json model_json(const KeyMatch& match);
void print_model(const KeyMatch& match, Printout& out);

}  // namespace qcts::cli
