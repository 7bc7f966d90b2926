// SPDX-License-Identifier: BSD-3-Clause
// --strict of check, dequantize and convert: attributes that no class has are refused instead of noted.
#pragma once

#include <CLI/CLI.hpp>

#include "reference/dialects/checkpoint.h"

namespace qcts::cli {

// Adds --strict.
void add_strict(CLI::App& command, bool& strict);
// Throws Failure if a tensor or an OrderedDict has a further attribute. The message names each tensor and
// attribute.
void require_no_further(const Checkpoint& checkpoint);

}  // namespace qcts::cli
