// SPDX-License-Identifier: BSD-3-Clause
// NF4Tensor: four-bit codes that index a table, in blocks of the flattened weight.
#pragma once

#include <optional>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Dequantizes any shape, block size and scaler block size, as get_original_weight() does.
// Returns nullopt for other classes and for parts that do not fit each other.
std::optional<Tensor> dense_of_nf4(const NamedTensor& tensor);

}  // namespace qcts
