// SPDX-License-Identifier: BSD-3-Clause
// The ClassSchema::outer functions of torchao's float and block-scaled classes.
// Each derives the shape and dtype of the whole tensor from checked parts.
#pragma once

#include "reference/dialects/classes/schema.h"

namespace qcts {

// Float8Tensor, PrototypeFloat8Tensor, Float8Sparse2x4_2DData2DMetadataTensor: defined in decoders/float8.cc.
Outer float8_outer(const NamedTensor& tensor);
Outer prototype_float8_outer(const NamedTensor& tensor);
Outer sparse_float8_outer(const NamedTensor& tensor);
// MXTensor and NVFP4Tensor: defined in decoders/mx.cc.
Outer mx_outer(const NamedTensor& tensor);
Outer nvfp4_outer(const NamedTensor& tensor);
// NF4Tensor: defined in decoders/nf4.cc.
Outer nf4_outer(const NamedTensor& tensor);

}  // namespace qcts
