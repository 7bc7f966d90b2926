// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes torchao's first-generation weights in Marlin kernel order.
// The results are the same as from dequantize() in the classes that write such weights.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Accepts MarlinSparseAQTTensorImpl inside an AffineQuantizedTensor.
// Accepts MarlinQQQAQTTensorImpl with groups inside a MarlinQQQTensor.
// Either tensor may also be inside a LinearActivationQuantizedTensor.
// The result is row-major, in the tensor's shape and dtype.
// Returns nullopt for other classes and for inconsistent parts.
// Returns nullopt for MarlinQQQ without groups, whose own unpacking loses the sign of the codes.
std::optional<Tensor> dense_of_marlin(const NamedTensor& tensor);

}  // namespace qcts
