// SPDX-License-Identifier: BSD-3-Clause
// The ClassSchema::outer functions of torchao's float and block-scaled classes.
// Each derives the shape and dtype of the whole tensor from checked parts.
#pragma once

#include "reference/dialects/classes/schema.h"

namespace qcts {

// Defined in decoders/float8.cc for Float8Tensor, PrototypeFloat8Tensor
// and Float8Sparse2x4_2DData2DMetadataTensor.
Outer float8_outer(const NamedTensor& tensor);
Outer prototype_float8_outer(const NamedTensor& tensor);
Outer sparse_float8_outer(const NamedTensor& tensor);
// Defined in decoders/mx.cc for MXTensor and NVFP4Tensor.
Outer mx_outer(const NamedTensor& tensor);
Outer nvfp4_outer(const NamedTensor& tensor);
// Defined in decoders/nf4.cc for NF4Tensor.
Outer nf4_outer(const NamedTensor& tensor);

}  // namespace qcts
