// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes classes that no scheme describes, each with its own formula.
// These classes are optimizer states, weights for training, and lookup tables.
// All functions return the values of the class's own dequantize(), in its dtype.
// The functions return nullopt for other classes and for parts that contradict each other.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// OptimState8bit, OptimState4bit and OptimStateFp8. The result is float32, whatever dtype the state claims.
std::optional<Tensor> dense_of_optimizer_state(const NamedTensor& tensor);
// Weights that stay dense and are quantized only when they are multiplied.
// Packed BitNet weights and Float8TrainingTensor are supported too.
std::optional<Tensor> dense_of_training_weight(const NamedTensor& tensor);
// CodebookQuantizedTensor for Core ML, with one table per block.
std::optional<Tensor> dense_of_codebook(const NamedTensor& tensor);
// GGUFQuantizedTensor with any number of blocks in a super block of 256.
std::optional<Tensor> dense_of_gguf(const NamedTensor& tensor);

}  // namespace qcts
