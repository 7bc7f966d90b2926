// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes torchao's first-generation weights in Marlin kernel order, as their writers' dequantize() does.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Accepts MarlinSparseAQTTensorImpl inside an AffineQuantizedTensor and MarlinQQQAQTTensorImpl with groups
// inside a MarlinQQQTensor, each also inside LinearActivationQuantizedTensor. Row-major, in the tensor's
// shape and dtype. nullopt for other classes, inconsistent parts, and MarlinQQQ without groups, whose own
// unpacking loses the sign of the codes.
std::optional<Tensor> dense_of_marlin(const NamedTensor& tensor);

}  // namespace qcts
