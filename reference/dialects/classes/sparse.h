// SPDX-License-Identifier: BSD-3-Clause
// Weights of which a file keeps only what is not zero, as dense ones.
#pragma once

#include <optional>
#include <string>

#include "reference/dialects/classes/schema.h"

namespace qcts {

// torch's BSR under the names of torchao: AT + bsr_crow_indices [n/b + 1], bsr_col_indices [blocks], both
// int32 or int64, and bsr_values [blocks, b, b]. Row-major, of the tensor's shape and the values' dtype;
// nullopt where the parts contradict each other.
std::optional<Tensor> dense_of_blocks(const NamedTensor& tensor, const std::string& at);

// BlockSparseTensor, SparseSemiStructuredTensorCUTLASS; nullopt for every other class and for contradictions.
std::optional<Tensor> dense_of_sparse_weight(const NamedTensor& tensor);

// ClassSchema::outer of the two, and of SparseSemiStructuredTensorCUSPARSELT: torch 2.13.0, torch/sparse/
// semi_structured.py, whose `packed` is n x k/2 kept elements and cuSPARSELt's metadata in one.
Outer block_sparse_outer(const NamedTensor& tensor);
Outer semi_structured_outer(const NamedTensor& tensor);
Outer cusparselt_outer(const NamedTensor& tensor);

}  // namespace qcts
