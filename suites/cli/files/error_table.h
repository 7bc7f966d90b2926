// SPDX-License-Identifier: BSD-3-Clause
// Shows how far quantized weights are from their originals: diff --error, check --original.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/comparison/quantization_error.h"
#include "suites/base/terminal.h"

namespace qcts::cli {

// {"layers": [...], "not_compared": [...], "all": {...}}; sqnr_db is null where nothing differs.
nlohmann::ordered_json error_json(const QuantizationErrors& errors);
void print_errors(const QuantizationErrors& errors, Printout& out);

}  // namespace qcts::cli
