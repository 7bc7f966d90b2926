// SPDX-License-Identifier: BSD-3-Clause
// MXTensor and NVFP4Tensor: small floats with one scale for each block along the last dimension.
#pragma once

#include <optional>

#include "reference/dialects/classes/attributes.h"
#include "reference/dialects/classes/named_tensor.h"

namespace qcts {

// Returns the element type of MXTensor.elem_dtype; nullopt if unknown. torchao has its own names for six-bit
// types.
std::optional<DType> mx_element(const Json& elem_dtype);

// Dequantizes any block size, any number of dimensions, and one outer scale for each expert, as the class's
// dequantize() does. nullopt for other classes, and for tiled scales that do not cover the rows.
std::optional<Tensor> dense_of_block_floats(const NamedTensor& tensor);

}  // namespace qcts
