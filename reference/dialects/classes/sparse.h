// SPDX-License-Identifier: BSD-3-Clause
// Expands weights whose file stores only the nonzero elements.
#pragma once

#include <optional>
#include <string>

#include "reference/dialects/classes/schema.h"

namespace qcts {

// Expands torch's BSR under torchao's names. The part bsr_values is [blocks, b, b].
// The parts bsr_crow_indices [n/b + 1] and bsr_col_indices [blocks] are int32 or int64.
// The value of `at` precedes the name of each part.
// The result is row-major, in the tensor's shape and the dtype of the values. As in torch's to_dense(), -0
// becomes +0. Returns nullopt for inconsistent parts.
std::optional<Tensor> dense_of_blocks(const NamedTensor& tensor, const std::string& at);

// Expands BlockSparseTensor and SparseSemiStructuredTensorCUTLASS.
// Returns nullopt for other classes and for inconsistent parts.
std::optional<Tensor> dense_of_sparse_weight(const NamedTensor& tensor);

// The ClassSchema::outer functions of three classes. The classes are BlockSparseTensor,
// SparseSemiStructuredTensorCUTLASS and SparseSemiStructuredTensorCUSPARSELT.
// The `packed` part of the last class holds n x k/2 kept elements and cuSPARSELt's metadata.
// The source is torch 2.13.0, torch/sparse/semi_structured.py.
Outer block_sparse_outer(const NamedTensor& tensor);
Outer semi_structured_outer(const NamedTensor& tensor);
Outer cusparselt_outer(const NamedTensor& tensor);

}  // namespace qcts
