// SPDX-License-Identifier: BSD-3-Clause
// The TorchScript part of `qcts inspect`: the archive's contents other than tensors.
#pragma once

#include <nlohmann/json.hpp>

#include "reference/dialects/checkpoint.h"

namespace qcts::cli {

// Returns {"operator_set", "version_record",
//  "modules": [{path, class, parameters, buffers, attributes, constants, methods}],
//  "code": [{name, bytes}], "records": [the rest]}
nlohmann::ordered_json program_json(const TorchScript& script, const Limits& limits);
void print_program(const TorchScript& script, const Limits& limits);

}  // namespace qcts::cli
