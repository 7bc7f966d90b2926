// SPDX-License-Identifier: BSD-3-Clause
// Shows how far quantized weights are from their originals, for `diff --error` and `check --original`.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/comparison/quantization_error.h"
#include "suites/base/terminal.h"

namespace qcts::cli {

// Returns {"layers", "missing", "not_compared", "unquantized", "complete", "all"}. sqnr_db is null if nothing
// differs.
nlohmann::ordered_json error_json(const QuantizationErrors& errors);
void print_errors(const QuantizationErrors& errors, Printout& out);

}  // namespace qcts::cli
