// SPDX-License-Identifier: BSD-3-Clause
// Implements `check FILE --model SKELETON`: reports which keys of a model the file fills, and the memory that
// loading it takes.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/comparison/keys.h"
#include "reports/verdict.h"
#include "suites/base/terminal.h"

namespace qcts::cli {

// Returns {"verdict", "missing", "unexpected", "mismatched", "peak_bytes", "peak_bound_bytes", "weights"}.
// "weights" has the types before and after. `assign` is the verdict that measured the memory.
nlohmann::ordered_json model_json(const KeyMatch& match, const Verdict& assign);
void print_model(const KeyMatch& match, const Verdict& assign, Printout& out);
// Returns "peak memory 1,118,208 bytes, bound 68,227,072". Returns "" if it was not measured.
std::string peak_text(const Verdict& assign);

}  // namespace qcts::cli
