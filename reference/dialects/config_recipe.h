// SPDX-License-Identifier: BSD-3-Clause
// Compares a quantized weight with the configuration of config.json.
#pragma once

#include <string>

#include "reference/dialects/classes/named_tensor.h"
#include "reference/dialects/config.h"

namespace qcts {

// Says how a weight differs from what the configuration makes: "is Int8Tensor", "has groups of 64, not 32".
// Compares the class with the configuration, its _version and its packing; the block that shares a scale with
// its granularity or group size; the dtype of the codes; and whether x is quantized.
// Returns an empty string if they agree, or if qcts does not know the configuration.
std::string recipe_contradiction(const NamedTensor& tensor, const TorchAoQuantization& said);

}  // namespace qcts
