// SPDX-License-Identifier: BSD-3-Clause
// ClassSchema::outer of torchao's float and block-scaled classes: derives the whole's shape and dtype from
// checked parts.
#pragma once

#include "reference/dialects/classes/schema.h"

namespace qcts {

// decoders/float8.cc: Float8Tensor, PrototypeFloat8Tensor, Float8Sparse2x4_2DData2DMetadataTensor
Outer float8_outer(const NamedTensor& tensor);
Outer prototype_float8_outer(const NamedTensor& tensor);
Outer sparse_float8_outer(const NamedTensor& tensor);
// decoders/mx.cc: MXTensor, NVFP4Tensor
Outer mx_outer(const NamedTensor& tensor);
Outer nvfp4_outer(const NamedTensor& tensor);
// decoders/nf4.cc: NF4Tensor
Outer nf4_outer(const NamedTensor& tensor);

}  // namespace qcts
