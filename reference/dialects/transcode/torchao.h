// SPDX-License-Identifier: BSD-3-Clause
// Puts weights of other libraries into classes of torchao 0.18.0: integers into IntxUnpackedToInt8Tensor,
// float8 into Float8Tensor.
#pragma once

#include "reference/dialects/decoders/scheme_tensor.h"
#include "reference/dialects/transcode/grid_weight.h"

namespace qcts {

// Returns the planes of the class. Scales keep their values: those of integers have the weight's dtype if it
// holds them all, and float32 otherwise.
// Throws std::invalid_argument, which names the first group that no class holds.
SchemeTensor torchao_weight(const GridWeight& weight);

}  // namespace qcts
