// SPDX-License-Identifier: BSD-3-Clause
// Codes of 1 to 7 bits in shards of 4, 2 and 1 bits.
// The source is torchao 0.5 to 0.18, dtypes/uintx/bitpacking.py (prototype/dtypes since 0.16).
#pragma once

#include <optional>
#include <string>

#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Returns the codes in the shards whose names begin with `at`, row-major in `shape`.
// Returns nullopt if the shape of a shard or the bit width contradicts the rest.
std::optional<std::vector<double>> bit_shard_codes(const NamedTensor& tensor, const std::string& at,
                                                   const std::vector<int64_t>& shape);
// Returns the codes of a UintxTensor, one byte each.
std::optional<Tensor> dense_of_bit_shards(const NamedTensor& tensor);

}  // namespace qcts
