// SPDX-License-Identifier: BSD-3-Clause
// Dequantizes torchao's first-generation weights in Marlin kernel order
// as the dequantize() of their writers does.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Accepts MarlinSparseAQTTensorImpl inside an AffineQuantizedTensor, and MarlinQQQAQTTensorImpl
// with groups inside a MarlinQQQTensor. Either may also be inside a LinearActivationQuantizedTensor.
// The result is row-major, in the tensor's shape and dtype. Returns nullopt for other classes,
// for inconsistent parts, and for MarlinQQQ without groups, whose own unpacking loses the sign of the codes.
std::optional<Tensor> dense_of_marlin(const NamedTensor& tensor);

}  // namespace qcts
