// SPDX-License-Identifier: BSD-3-Clause
// Makes plain tensors from calls of torch's rebuild functions.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "reference/formats/torch/object.h"

namespace qcts {

// Returns the tensor of a call of _rebuild_tensor, _v2 or _v3 with these arguments.
// Returns nullopt for a lazily conjugated or negated tensor.
std::optional<Tensor> rebuild_plain(const TorchObject& object, std::string_view function,
                                    const pickle::Refs& args, uint64_t max_dims);
// Reads a tuple of integers, or a torch.Size of one.
std::vector<int64_t> dims_of(const pickle::Ref& node, uint64_t max_dims);
std::optional<DType> dtype_of_global(const pickle::Ref& node);
// Returns true for the value that torch.save writes for a tensor's hooks: an empty OrderedDict, or None.
bool is_empty_hooks(const pickle::Ref& node);

}  // namespace qcts
