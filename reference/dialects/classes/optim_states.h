// SPDX-License-Identifier: BSD-3-Clause
// torchao's quantized states of optimizers (torchao/optim, 0.18.0).
// The classes are OptimState8bit, OptimState4bit and OptimStateFp8.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Returns the float32 result of the state's dequantize().
// Returns nullopt for other classes and for parts that contradict each other.
std::optional<Tensor> dense_of_optim_state(const NamedTensor& tensor);

}  // namespace qcts
