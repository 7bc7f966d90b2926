// SPDX-License-Identifier: BSD-3-Clause
// Checks the calls of torch's rebuild functions against their schemas.
#pragma once

#include <string_view>

#include "reference/formats/torch/object.h"

namespace qcts {

// Checks every call of a torch rebuild function in the graph.
void check_tensors(const TorchObject& object, const Limits& limits);
// Checks a call that makes a sparse, quantized, nested, meta or wrapper tensor.
void check_special_tensor(const TorchObject& object, std::string_view function, const pickle::Refs& args,
                          const Limits& limits, uint64_t offset);
// Returns the name of a torch rebuild function, "_rebuild_tensor_v2", as a part of the global's text.
// Returns an empty string for any other node.
std::string_view rebuild_function(const pickle::Ref& callable);

}  // namespace qcts
