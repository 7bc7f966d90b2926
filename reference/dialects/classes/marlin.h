// SPDX-License-Identifier: BSD-3-Clause
// Weights of torchao's first generation in the order of Marlin kernels: what their writers' dequantize()
// gives.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// MarlinSparseAQTTensorImpl inside an AffineQuantizedTensor, MarlinQQQAQTTensorImpl with groups inside a
// MarlinQQQTensor, each also below LinearActivationQuantizedTensor. Row-major, of the tensor's own shape and
// dtype; nullopt for everything else and for parts that contradict each other. MarlinQQQ without groups too:
// its own unpacking loses the sign of the codes.
std::optional<Tensor> dense_of_marlin(const NamedTensor& tensor);

}  // namespace qcts
